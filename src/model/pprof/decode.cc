// SPDX-License-Identifier: Apache-2.0
// profile.proto to Profile. The tables first, in whatever order the file has them, then the
// samples, which refer to them. Nothing is stored before it is checked, and text becomes a string
// of the Profile only when a function, a file or a source needs it.
#include <algorithm>

#include "model/escape.h"
#include "model/hash.h"
#include "model/pprof/format.h"
#include "model/pprof/pprof.h"
#include "model/pprof/raw.h"
#include "model/source.h"

namespace pkprof {

namespace {

using namespace pprof;

constexpr uint32_t unknown = UINT32_MAX;

// The ids of a table's entries are 1..n in any order. Calls use(entry) in the order of the ids.
template <typename Entry, typename Use>
void in_order_of_ids(const std::vector<Entry>& table, const char* bad_id, Use use) {
  std::vector<const Entry*> by_id(table.size());
  for (const Entry& entry : table) {
    require(entry.id >= 1 && entry.id <= table.size() && by_id[entry.id - 1] == nullptr, bad_id);
    by_id[entry.id - 1] = &entry;
  }
  for (const Entry* entry : by_id) use(*entry);
}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : file_(read_raw(bytes)) {}

  Profile run() {
    read_comment();
    find_values();
    build_mappings();
    build_frames();
    build_clients();
    build_wakeups();
    // Not blindly what the file says: its samples may all be the same one.
    profile_.reserve(std::min(file_.samples.size(), size_t{1} << 20));
    for (const protozero::data_view sample : file_.samples) add_sample(sample);
    return std::move(profile_);
  }

 private:
  void read_comment();
  void find_values();
  void build_mappings();
  void build_frames();
  void add_sample(protozero::data_view sample);
  [[nodiscard]] bool is_no_stack(const Frame& frame) const;
  void build_clients();
  void build_wakeups();
  StackId stack_of_sample();
  SampleValue value_of_sample(Resource& resource);
  SampleKey key_of_sample();
  void read_text_label(const RawLabel& label, std::string_view key, SampleKey& to);
  StringId string(uint64_t index);
  [[nodiscard]] LabelId label_named(std::string_view name, const char* otherwise) const;
  template <typename Parties>
  void separate_steal(Parties& of);
  LabelId label(uint64_t index);

  const RawFile file_;
  Profile profile_;
  MetaComment comment_;
  std::vector<LabelId> labels_;    // by position in comment_.labels
  std::vector<ClientId> clients_;  // by position in comment_.clients
  IndexTable label_names_;         // positions in comment_.names
  // From the file's positions to the Profile's ids; `unknown` while not looked up.
  std::vector<StringId> string_ids_;
  std::vector<LabelId> label_ids_;
  std::vector<MappingId> mapping_ids_;
  std::vector<FrameId> frame_ids_;             // `unknown`: stands for an empty stack
  std::vector<const ValueType*> value_types_;  // by sample type; null: not ours
  std::vector<WakeupId> wakeups_;              // by position in the file, from 1
  // The sample at hand, and what came before it.
  std::vector<uint64_t> sample_locations_;
  std::vector<uint64_t> sample_values_;
  std::vector<RawLabel> sample_labels_;
  std::vector<FrameId> stack_;
  SampleValue total_;
  size_t stack_frames_ = 0;
};

void Decoder::read_comment() {
  for (const uint64_t index : file_.comments) {
    if (!is_meta_comment(file_.text(index))) continue;
    Result<MetaComment> comment = decode_comment(file_.text(index));
    if (!comment) throw Malformed{comment.error().message};
    comment_ = std::move(*comment);
    break;
  }
  require(!comment_.names.empty(),
          "a pprof file, but not one of pkprof's (it has no pkprof comment); open it with "
          "`go tool pprof`, or make a profile of it with `pkprof import`");
  Meta& meta = profile_.meta = comment_.meta;
  meta.start_unix_ns = file_.time;
  meta.duration_ns = file_.duration;
  uint64_t cpu_ns = 0;
  require(!__builtin_mul_overflow(meta.duration_ns, uint64_t{meta.cpus}, &cpu_ns),
          "its duration is out of range");
  for (size_t i = 0; i < comment_.names.size(); ++i) {
    const std::string& name = comment_.names[i];
    const uint64_t hash = hash_bytes(hash_seed(), name);
    const auto same = [&](uint32_t j) { return comment_.names[j] == name; };
    require(label_names_.find(hash, same) == IndexTable::none, "two labels have the same name");
    label_names_.insert(hash, static_cast<uint32_t>(i));
    labels_.push_back(profile_.label(comment_.labels[i]));
  }
  std::vector<StringId> sources;
  sources.reserve(comment_.timeline_sources.size());
  for (const std::string& source : comment_.timeline_sources)
    sources.push_back(profile_.string(source));
  for (const auto& [slot, ran_on, served, source, ns] : comment_.timeline) {
    profile_.timeline.push_back({slot, labels_[ran_on], labels_[served], sources[source], ns});
    separate_steal(profile_.timeline.back());
  }
  for (const auto& [label, thread, name] : comment_.threads)
    profile_.name_thread(label_named(label, "a thread is of a process that is not in the table"),
                         thread, name);
  string_ids_.assign(file_.strings.size(), unknown);
  label_ids_.assign(file_.strings.size(), unknown);
}

// Steal was a source of OTHER before it was a label. Of a sample or a cell of the timeline.
template <typename Parties>
void Decoder::separate_steal(Parties& of) {
  if (profile_.text(of.source) != stolen_by_host) return;
  for (LabelId* const label : {&of.ran_on, &of.served})
    if (profile_.labels()[*label].kind == LabelKind::other)
      *label = profile_.label({.kind = LabelKind::steal});
}

void Decoder::find_values() {
  for (const RawValueType& value_type : file_.value_types) {
    const std::string_view type = file_.text(value_type.type);
    const std::string_view unit = file_.text(value_type.unit);
    const auto* const ours = std::ranges::find_if(
        value_types, [&](const ValueType& v) { return v.type == type && v.unit == unit; });
    value_types_.push_back(ours == value_types.end() ? nullptr : ours);
  }
}

void Decoder::build_mappings() {
  std::vector<uint64_t> vaddrs(file_.mappings.size(), no_vaddr);
  for (const auto& [mapping, vaddr] : comment_.vaddrs) {
    require(mapping >= 1 && mapping <= vaddrs.size(), "the address of a mapping that is not there");
    vaddrs[mapping - 1] = vaddr;
  }
  in_order_of_ids(file_.mappings, "the ids of its mappings are not unique", [&](const auto& raw) {
    mapping_ids_.push_back(profile_.mapping({.start = raw.start,
                                             .limit = raw.limit,
                                             .offset = raw.offset,
                                             .file = unescape_text(file_.text(raw.file)),
                                             .build_id = unescape_text(file_.text(raw.build_id)),
                                             .vaddr = vaddrs[raw.id - 1]}));
  });
}

void Decoder::build_frames() {
  std::vector<const RawFunction*> functions;
  in_order_of_ids(file_.functions, "the ids of its functions are not unique",
                  [&](const auto& raw) { functions.push_back(&raw); });
  std::vector<Frame> frames;
  in_order_of_ids(file_.locations, "the ids of its locations are not unique", [&](const auto& raw) {
    Frame frame{.address = raw.address};
    require(raw.mapping <= mapping_ids_.size(), "a mapping id is out of range");
    if (raw.mapping != 0) frame.mapping = mapping_ids_[raw.mapping - 1];
    require(raw.line_count <= 1, "a location has more than one line, which pkprof does not write");
    const RawLine line = raw.line_count ? file_.lines[raw.first_line] : RawLine{};
    require(line.function <= functions.size(), "a function id is out of range");
    if (line.function != 0) {
      frame.function = string(functions[line.function - 1]->name);
      frame.file = string(functions[line.function - 1]->file);
    }
    require(line.line <= UINT32_MAX, "a line number is out of range");
    frame.line = static_cast<uint32_t>(line.line);
    frame.kind = default_kind(frame);
    frames.push_back(frame);
  });
  for (const auto& [location, kind] : comment_.kinds) {
    require(location >= 1 && location <= frames.size(), "the kind of a location that is not there");
    frames[location - 1].kind = kind;
  }
  for (const Frame& frame : frames)
    frame_ids_.push_back(is_no_stack(frame) ? unknown : profile_.frame(frame));
}

// Once frames are there.
void Decoder::build_clients() {
  for (size_t i = 0; i < comment_.clients.size(); ++i) {
    Client client = comment_.clients[i];
    client.label = labels_[client.label];
    for (LabelId& via : client.via) via = labels_[via];
    sample_locations_ = comment_.calls[i];
    client.call = stack_of_sample();
    clients_.push_back(profile_.client(client));
  }
  for (const auto& [server, client, count] : comment_.requests)
    profile_.requests[{labels_[server], clients_[client]}] = count;
}

void Decoder::build_wakeups() {
  wakeups_.push_back(0);
  for (const auto& [label, before, locations] : comment_.wakeups) {
    Wakeup wakeup{.label = labels_[label]};
    for (const uint32_t one : before) wakeup.before.push_back(labels_[one]);
    sample_locations_ = locations;
    wakeup.stack = stack_of_sample();
    wakeups_.push_back(profile_.wakeup(wakeup));
  }
}

bool Decoder::is_no_stack(const Frame& frame) const {
  return frame.kind == FrameKind::pseudo && frame.address == 0 && frame.mapping == no_mapping &&
         frame.file == 0 && frame.line == 0 && profile_.text(frame.function) == no_stack;
}

StringId Decoder::string(uint64_t index) {
  const std::string_view text = file_.text(index);
  if (string_ids_[index] == unknown) string_ids_[index] = profile_.string(unescape_text(text));
  return string_ids_[index];
}

LabelId Decoder::label_named(std::string_view name, const char* otherwise) const {
  const uint32_t position = label_names_.find(
      hash_bytes(hash_seed(), name), [&](uint32_t i) { return comment_.names[i] == name; });
  require(position != IndexTable::none, otherwise);
  return labels_[position];
}

LabelId Decoder::label(uint64_t index) {
  const std::string_view name = file_.text(index);
  if (label_ids_[index] == unknown)
    label_ids_[index] = label_named(name, "a sample names a process that is not in its table");
  return label_ids_[index];
}

void Decoder::add_sample(protozero::data_view sample) {
  read_raw_sample(sample, sample_locations_, sample_values_, sample_labels_);
  SampleKey key = key_of_sample();
  key.stack = stack_of_sample();
  const SampleValue value = value_of_sample(key.resource);
  profile_.add(key, value);
}

StackId Decoder::stack_of_sample() {
  stack_.clear();
  for (const uint64_t location : sample_locations_) {
    require(location >= 1 && location <= frame_ids_.size(), "a location id is out of range");
    if (frame_ids_[location - 1] != unknown) stack_.push_back(frame_ids_[location - 1]);
  }
  const size_t stacks = profile_.stack_count();
  const StackId id = profile_.stack(stack_);
  if (profile_.stack_count() != stacks) stack_frames_ += stack_.size();
  require(stack_frames_ <= max_stack_frames, "its stacks are too many");
  return id;
}

// And of which resource it is: it has values of one alone.
SampleValue Decoder::value_of_sample(Resource& resource) {
  require(sample_values_.size() == value_types_.size(),
          "a sample does not have one value of each type");
  const ValueType* first = nullptr;
  SampleValue value;
  for (size_t i = 0; i < value_types_.size(); ++i) {
    const ValueType* const type = value_types_[i];
    if (type == nullptr || sample_values_[i] == 0) continue;
    if (first == nullptr) first = type;
    require(first->resource == type->resource, "a sample has values of several resources");
    value.*type->member = sample_values_[i];
    uint64_t& total = total_.*type->member;
    const bool overflow = __builtin_add_overflow(total, sample_values_[i], &total);
    require(!overflow && total <= INT64_MAX, "its values are negative or add up to too much");
  }
  resource = first ? first->resource : Resource::cpu;
  return value;
}

SampleKey Decoder::key_of_sample() {
  SampleKey key{.ran_on = unknown, .served = unknown};
  for (const RawLabel& label : sample_labels_) {
    const std::string_view name = file_.text(label.key);
    if (name == key_ran_on) {
      key.ran_on = this->label(label.str);
    } else if (name == key_served) {
      key.served = this->label(label.str);
    } else if (name == key_source) {
      key.source = string(label.str);
    } else if (name == key_basis) {
      const auto basis = basis_from_string(file_.text(label.str));
      require(basis.has_value(), "a sample has an unknown basis; use a newer pkprof");
      key.basis = *basis;
    } else if (name == key_thread || name == key_served_thread) {
      require(label.num <= UINT32_MAX, "a thread id is out of range");
      uint32_t& thread = name == key_thread ? key.thread : key.served_thread;
      thread = static_cast<uint32_t>(label.num);
    } else if (name == key_client_number) {
      require(label.num < clients_.size(), "a sample names a client that is not in its table");
      key.client = clients_[label.num];
    } else if (name == key_wakeup) {
      require(label.num < wakeups_.size(), "a sample names a wakeup that is not in its table");
      key.wakeup = wakeups_[label.num];
    }
  }
  require(key.ran_on != unknown && key.served != unknown,
          "a sample does not say who ran or who was served");
  separate_steal(key);
  return key;
}

}  // namespace

Result<Profile> decode_pprof(std::span<const std::byte> bytes) {
  return with_plain_bytes(bytes, [](std::string_view message) { return Decoder(message).run(); });
}

}  // namespace pkprof
