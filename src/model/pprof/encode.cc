// SPDX-License-Identifier: Apache-2.0
// Profile to profile.proto, table by table. The ids of the file are the Profile's plus one.
#include <algorithm>
#include <array>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>

#include "model/escape.h"
#include "model/gzip.h"
#include "model/hash.h"
#include "model/pprof/format.h"
#include "model/pprof/pprof.h"

namespace pkprof {

namespace {

using namespace pprof;
using protozero::pbf_writer;

// The string table of the file: escaped text, by position.
class StringTable {
 public:
  StringTable() { add(""); }

  int64_t add(std::string_view raw) { return add_escaped(escape_text(raw)); }

  int64_t add_escaped(std::string escaped) {
    const uint64_t hash = hash_bytes(hash_seed(), escaped);
    const uint32_t found = index_.find(hash, [&](uint32_t i) { return strings_[i] == escaped; });
    if (found != IndexTable::none) return found;
    index_.insert(hash, static_cast<uint32_t>(strings_.size()));
    strings_.push_back(std::move(escaped));
    return static_cast<int64_t>(strings_.size() - 1);
  }

  [[nodiscard]] const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::vector<std::string> strings_;
  IndexTable index_;
};

class Encoder {
 public:
  explicit Encoder(const Profile& profile)
      : profile_(profile), names_(unique_names(profile.labels())), out_(bytes_) {}

  std::string run() {
    prepare();
    put_sample_types();
    for (const auto& [key, value] : profile_.samples()) put_sample(key, value);
    put_mappings();
    put_locations();
    put_functions();
    put_no_stack();
    put_header();
    for (const std::string& text : strings_.strings())
      out_.add_string(profile_field::string_table, text);
    return std::move(bytes_);
  }

 private:
  struct Function {
    StringId name;
    StringId file;
    bool operator==(const Function&) const = default;
  };

  void prepare();
  int64_t string_of(StringId id);
  uint64_t function_of(const Frame& frame);
  void put_value_type(uint32_t field, std::string_view type, std::string_view unit);
  void put_sample_types();
  void put_sample(const SampleKey& key, const SampleValue& value);
  void put_label(pbf_writer& sample, int64_t key, uint32_t field, int64_t value);
  [[nodiscard]] uint64_t no_stack_location() const { return profile_.frames().size() + 1; }
  void put_mappings();
  void put_locations();
  void put_no_stack();
  void put_functions();
  void put_header();
  [[nodiscard]] std::string comment() const;

  const Profile& profile_;
  const std::vector<std::string> names_;  // of the labels
  std::string bytes_;
  pbf_writer out_;
  StringTable strings_;
  std::vector<int64_t> string_ids_;  // by StringId, 0 while not in the table
  std::vector<Function> functions_;
  IndexTable function_index_;
  std::vector<ValueType> types_;  // those that are there
  // Positions in the string table of what every sample needs.
  std::vector<int64_t> label_ids_;
  std::vector<int64_t> cgroup_ids_;
  std::vector<int64_t> container_ids_;
  std::vector<int64_t> host_ids_;
  std::array<int64_t, basis_count> basis_ids_{};
  int64_t ran_on_ = 0, served_ = 0, source_ = 0, basis_ = 0, cgroup_ = 0, container_ = 0, host_ = 0;
  int64_t thread_ = 0, served_thread_ = 0;
  int64_t wakeup_ = 0;
  int64_t client_ = 0, client_rule_ = 0, client_number_ = 0;
  std::vector<uint64_t> scratch_;
};

void Encoder::prepare() {
  // What every file has, and what this one has a value of.
  for (const ValueType& type : value_types) {
    const bool always = type.member == &SampleValue::count || type.member == &SampleValue::ns;
    if ((always && type.resource == Resource::cpu) ||
        std::ranges::any_of(profile_.samples(), [&type](const Profile::Sample& sample) {
          return sample.key.resource == type.resource && sample.value.*type.member != 0;
        }))
      types_.push_back(type);
  }
  ran_on_ = strings_.add(key_ran_on);
  served_ = strings_.add(key_served);
  source_ = strings_.add(key_source);
  basis_ = strings_.add(key_basis);
  cgroup_ = strings_.add(key_cgroup);
  container_ = strings_.add(key_container);
  thread_ = strings_.add(key_thread);
  served_thread_ = strings_.add(key_served_thread);
  if (std::ranges::any_of(profile_.labels(), [](const Label& l) { return !l.host.empty(); }))
    host_ = strings_.add(key_host);
  if (profile_.wakeups().size() > 1) wakeup_ = strings_.add(key_wakeup);
  if (profile_.clients().size() > 1) {
    client_ = strings_.add(key_client);
    client_rule_ = strings_.add(key_client_rule);
    client_number_ = strings_.add(key_client_number);
  }
  for (int i = 0; i < basis_count; ++i)
    basis_ids_[i] = strings_.add(to_string(static_cast<Basis>(i)));
  for (const std::string& name : names_) label_ids_.push_back(strings_.add_escaped(name));
  for (const Label& label : profile_.labels()) {
    cgroup_ids_.push_back(strings_.add(label.cgroup));
    container_ids_.push_back(strings_.add(container_title(container_of(label))));
    host_ids_.push_back(strings_.add(label.host));
  }
}

int64_t Encoder::string_of(StringId id) {
  if (id >= string_ids_.size()) string_ids_.resize(id + 1);
  if (string_ids_[id] == 0) string_ids_[id] = strings_.add(profile_.text(id));
  return string_ids_[id];
}

// The id (from 1) of the frame's function, 0 when the frame has no line to speak of.
uint64_t Encoder::function_of(const Frame& frame) {
  if (frame.function == 0 && frame.file == 0 && frame.line == 0) return 0;
  const Function function{frame.function, frame.file};
  const uint64_t hash = hash_words(hash_seed(), {function.name, function.file});
  uint32_t found =
      function_index_.find(hash, [&](uint32_t i) { return functions_[i] == function; });
  if (found == IndexTable::none) {
    found = static_cast<uint32_t>(functions_.size());
    functions_.push_back(function);
    function_index_.insert(hash, found);
  }
  return found + 1ULL;
}

void Encoder::put_value_type(uint32_t field, std::string_view type, std::string_view unit) {
  const int64_t type_id = strings_.add(type);
  const int64_t unit_id = strings_.add(unit);
  pbf_writer to(out_, field);
  to.add_int64(value_type_field::type, type_id);
  to.add_int64(value_type_field::unit, unit_id);
}

void Encoder::put_sample_types() {
  for (const ValueType& type : types_)
    put_value_type(profile_field::sample_type, type.type, type.unit);
}

void Encoder::put_sample(const SampleKey& key, const SampleValue& value) {
  pbf_writer to(out_, profile_field::sample);
  scratch_.clear();
  for (const FrameId frame : profile_.frames_of(key.stack)) scratch_.push_back(frame + 1ULL);
  if (scratch_.empty()) scratch_.push_back(no_stack_location());
  to.add_packed_uint64(sample_field::location_id, scratch_.begin(), scratch_.end());

  scratch_.clear();
  for (const ValueType& type : types_)
    scratch_.push_back(key.resource == type.resource ? value.*type.member : 0);
  to.add_packed_uint64(sample_field::value, scratch_.begin(), scratch_.end());

  put_label(to, ran_on_, label_field::str, label_ids_[key.ran_on]);
  put_label(to, served_, label_field::str, label_ids_[key.served]);
  put_label(to, source_, label_field::str, string_of(key.source));
  put_label(to, basis_, label_field::str, basis_ids_[static_cast<size_t>(key.basis)]);
  put_label(to, cgroup_, label_field::str, cgroup_ids_[key.served]);
  put_label(to, container_, label_field::str, container_ids_[key.served]);
  put_label(to, host_, label_field::str, host_ids_[key.served]);
  put_label(to, thread_, label_field::num, key.thread);
  put_label(to, served_thread_, label_field::num, key.served_thread);
  put_label(to, wakeup_, label_field::num, key.wakeup);
  if (key.client == 0) return;
  const Client& client = profile_.clients()[key.client];
  put_label(to, client_, label_field::str, label_ids_[client.label]);
  put_label(to, client_rule_, label_field::str, strings_.add(to_string(client.rule)));
  put_label(to, client_number_, label_field::num, key.client);
}

// What is empty or zero is left out: that is how pprof says it.
void Encoder::put_label(pbf_writer& sample, int64_t key, uint32_t field, int64_t value) {
  if (value == 0) return;
  pbf_writer to(sample, sample_field::label);
  to.add_int64(label_field::key, key);
  to.add_int64(field, value);
}

void Encoder::put_mappings() {
  uint64_t id = 0;
  for (const Mapping& mapping : profile_.mappings()) {
    pbf_writer to(out_, profile_field::mapping);
    to.add_uint64(mapping_field::id, ++id);
    to.add_uint64(mapping_field::start, mapping.start);
    to.add_uint64(mapping_field::limit, mapping.limit);
    to.add_uint64(mapping_field::offset, mapping.offset);
    to.add_int64(mapping_field::file, strings_.add(mapping.file));
    to.add_int64(mapping_field::build_id, strings_.add(mapping.build_id));
    to.add_bool(mapping_field::has_functions, true);
  }
}

void Encoder::put_locations() {
  uint64_t id = 0;
  for (const Frame& frame : profile_.frames()) {
    pbf_writer to(out_, profile_field::location);
    to.add_uint64(location_field::id, ++id);
    if (frame.mapping != no_mapping)
      to.add_uint64(location_field::mapping_id, frame.mapping + 1ULL);
    if (frame.address != 0) to.add_uint64(location_field::address, frame.address);
    if (const uint64_t function = function_of(frame)) {
      pbf_writer line(to, location_field::line);
      line.add_uint64(line_field::function_id, function);
      if (frame.line != 0) line.add_int64(line_field::line, frame.line);
    }
  }
}

void Encoder::put_functions() {
  uint64_t id = 0;
  for (const Function& function : functions_) {
    const int64_t name = string_of(function.name);
    pbf_writer to(out_, profile_field::function);
    to.add_uint64(function_field::id, ++id);
    to.add_int64(function_field::name, name);
    to.add_int64(function_field::system_name, name);
    if (function.file != 0) to.add_int64(function_field::file, string_of(function.file));
  }
}

// After all others, so that no id of ours moves.
void Encoder::put_no_stack() {
  const int64_t name = strings_.add(no_stack);
  const uint64_t id = functions_.size() + 1;
  {
    pbf_writer function(out_, profile_field::function);
    function.add_uint64(function_field::id, id);
    function.add_int64(function_field::name, name);
    function.add_int64(function_field::system_name, name);
  }
  pbf_writer location(out_, profile_field::location);
  location.add_uint64(location_field::id, no_stack_location());
  pbf_writer line(location, location_field::line);
  line.add_uint64(line_field::function_id, id);
}

void Encoder::put_header() {
  const Meta& meta = profile_.meta;
  const uint64_t hz = meta.frequency_hz;
  put_value_type(profile_field::period_type, "cpu", "nanoseconds");
  out_.add_int64(profile_field::period,
                 hz == 0 ? 0 : static_cast<int64_t>((1'000'000'000 + hz / 2) / hz));
  out_.add_uint64(profile_field::time_nanos, meta.start_unix_ns);
  out_.add_uint64(profile_field::duration_nanos, meta.duration_ns);
  out_.add_int64(profile_field::default_sample_type, strings_.add("cpu"));
  // Not escaped again: it is text of our own that must come back as it is.
  out_.add_int64(profile_field::comment, strings_.add_escaped(comment()));
}

std::string Encoder::comment() const {
  MetaComment comment{.meta = profile_.meta, .labels = profile_.labels(), .names = names_};
  for (size_t i = 0; i < profile_.frames().size(); ++i) {
    const Frame& frame = profile_.frames()[i];
    if (frame.kind != default_kind(frame)) comment.kinds.push_back({i + 1, frame.kind});
  }
  for (size_t i = 0; i < profile_.mappings().size(); ++i) {
    const uint64_t vaddr = profile_.mappings()[i].vaddr;
    if (vaddr != no_vaddr) comment.vaddrs.push_back({i + 1, vaddr});
  }
  comment.clients = profile_.clients();
  for (const Client& client : comment.clients) {
    std::vector<uint64_t>& call = comment.calls.emplace_back();
    for (const FrameId frame : profile_.frames_of(client.call)) call.push_back(frame + 1);
  }
  for (const Wakeup& wakeup : std::span(profile_.wakeups()).subspan(1)) {
    MetaComment::WakeupOf& to = comment.wakeups.emplace_back(wakeup.label, wakeup.before);
    for (const FrameId frame : profile_.frames_of(wakeup.stack)) to.locations.push_back(frame + 1);
  }
  for (const auto& [pair, count] : profile_.requests)
    comment.requests.push_back({pair.first, pair.second, count});
  for (const auto& [thread, name] : profile_.thread_names())
    comment.threads.push_back({names_[thread.first], thread.second, name});
  std::unordered_map<StringId, uint32_t> sources;
  for (const TimelineCell& cell : profile_.timeline) {
    const auto next = static_cast<uint32_t>(sources.size());
    const auto [it, fresh] = sources.try_emplace(cell.source, next);
    if (fresh) comment.timeline_sources.push_back(profile_.text(cell.source));
    comment.timeline.push_back({cell.slot, cell.ran_on, cell.served, it->second, cell.ns});
  }
  return encode_comment(comment);
}

}  // namespace

Result<std::string> encode_pprof(const Profile& profile) {
  return gzip(Encoder(profile).run());
}

}  // namespace pkprof
