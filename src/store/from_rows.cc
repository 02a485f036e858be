// SPDX-License-Identifier: Apache-2.0
#include "store/from_rows.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "store/failure.h"
#include "store/meta_of_cuts.h"

namespace pkprof::store {
namespace {

// Rows by their numbers, and the profile's numbers for those it has already.
template <typename Row, typename Number>
class Rows {
 public:
  void want(Id id) {
    if (id != no_id) wanted_.push_back(id);
  }

  void read(ContentReader& reader) {
    std::ranges::sort(wanted_);
    wanted_.erase(std::ranges::unique(wanted_).begin(), wanted_.end());
    rows_.reserve(wanted_.size());
    reader.read(wanted_, rows_);
    for (size_t i = 0; i < rows_.size(); ++i) places_.emplace(rows_[i].id, i);
    numbers_.assign(rows_.size(), unknown);
  }

  [[nodiscard]] const std::vector<Row>& all() const { return rows_; }

  // The profile's number of the row: what `make` gives, the first time.
  template <typename Make>
  Number number(Id id, Make make) {
    const auto place = places_.find(id);
    if (place == places_.end())
      damaged(std::string("something names a row of ") + Table<Row>::name + " that is not there");
    if (numbers_[place->second] == unknown) numbers_[place->second] = make(rows_[place->second]);
    return numbers_[place->second];
  }

 private:
  static constexpr Number unknown = UINT32_MAX;
  std::vector<Id> wanted_;
  std::vector<Row> rows_;
  std::unordered_map<Id, size_t> places_;
  std::vector<Number> numbers_;
};

// An enum's number, which must be one that this pkprof knows.
template <typename Enum>
Enum known(uint32_t number, size_t count, const char* what) {
  if (number >= count)
    throw Failure{std::string(what) + " " + std::to_string(number) +
                  " is not known; use a newer pkprof"};
  return static_cast<Enum>(number);
}

class ProfileMaker {
 public:
  ProfileMaker(const QueryRows& found, ContentReader& reader) : found_(found), reader_(reader) {}

  Profile run() {
    read_tables();
    profile_.meta = meta_of(found_.cuts);
    for (const CutRow& cut : found_.cuts) hosts_.insert(cut.host);
    profile_.reserve(found_.charges.size());
    for (const ChargeRow& row : found_.charges) add_charge(row);
    for (const RequestRow& row : found_.requests) {
      uint64_t& requests = profile_.requests[{label(row.server), client(row.client)}];
      add_up(requests, row.requests);
    }
    for (const ThreadRow& row : found_.threads)
      profile_.name_thread(label(row.label), row.thread, profile_.text(string(row.name)));
    add_figures();
    add_degraded();
    return std::move(profile_);
  }

 private:
  void read_tables();
  void add_charge(const ChargeRow& row);
  void add_figures();
  void add_degraded();
  static void add_up(uint64_t& to, uint64_t value);
  LabelId label(Id id);
  LabelId make_label(const LabelRow& row);
  StringId string(Id id);
  MappingId mapping(Id id);
  FrameId frame(Id id);
  StackId stack(Id id);
  ClientId client(Id id);
  WakeupId wakeup(Id id);
  std::vector<LabelId> labels(const std::vector<Id>& ids);

  const QueryRows& found_;
  ContentReader& reader_;
  Profile profile_;
  std::set<std::string> hosts_;
  SampleValue total_;
  Rows<LabelRow, LabelId> labels_;
  Rows<StringRow, StringId> strings_;
  Rows<MappingRow, MappingId> mappings_;
  Rows<FrameRow, FrameId> frames_;
  Rows<StackRow, StackId> stacks_;
  Rows<ClientRow, ClientId> clients_;
  Rows<WakeupRow, WakeupId> wakeups_;
};

// Each table once those that refer to it are read.
void ProfileMaker::read_tables() {
  for (const ChargeRow& row : found_.charges) {
    for (const Id id : {row.ran_on, row.served}) labels_.want(id);
    strings_.want(row.source);
    stacks_.want(row.stack);
    clients_.want(row.client);
    wakeups_.want(row.wakeup);
  }
  for (const RequestRow& row : found_.requests) {
    labels_.want(row.server);
    clients_.want(row.client);
  }
  for (const ThreadRow& row : found_.threads) {
    labels_.want(row.label);
    strings_.want(row.name);
  }
  for (const FigureRow& row : found_.figures) strings_.want(row.name);
  for (const auto& row : found_.degraded) strings_.want(row.sentence);
  clients_.read(reader_);
  for (const ClientRow& row : clients_.all()) {
    labels_.want(row.label);
    for (const Id id : row.via) labels_.want(id);
    stacks_.want(row.call);
  }
  wakeups_.read(reader_);
  for (const WakeupRow& row : wakeups_.all()) {
    labels_.want(row.label);
    for (const Id id : row.before) labels_.want(id);
    stacks_.want(row.stack);
  }
  labels_.read(reader_);
  stacks_.read(reader_);
  for (const StackRow& row : stacks_.all())
    for (const Id id : row.frames) frames_.want(id);
  frames_.read(reader_);
  for (const FrameRow& row : frames_.all()) {
    mappings_.want(row.mapping);
    for (const Id id : {row.function, row.file}) strings_.want(id);
  }
  mappings_.read(reader_);
  strings_.read(reader_);
}

// The pprof file has no larger sums, either.
void ProfileMaker::add_up(uint64_t& to, uint64_t value) {
  if (value > INT64_MAX || __builtin_add_overflow(to, value, &to) || to > INT64_MAX)
    damaged("its values are negative or add up to too much");
}

LabelId ProfileMaker::label(Id id) {
  if (id == no_id) return profile_.label({.kind = LabelKind::other});
  return labels_.number(id, [this](const LabelRow& row) { return make_label(row); });
}

LabelId ProfileMaker::make_label(const LabelRow& row) {
  return profile_.label({.kind = known<LabelKind>(row.kind, label_kind_count, "a label's kind"),
                         .pid = row.pid,
                         .start_ns = row.start_ns,
                         .kthread = row.kthread != 0,
                         .without_pid = row.without_pid != 0,
                         .parent_pid = row.parent_pid,
                         .comm = row.comm,
                         .first_comm = row.first_comm,
                         .exe = row.exe,
                         .cgroup = row.cgroup,
                         .container = {.id = row.container_id,
                                       .runtime = row.runtime,
                                       .name = row.container_name,
                                       .image = row.image,
                                       .pod = row.pod,
                                       .pod_namespace = row.pod_namespace,
                                       .pod_uid = row.pod_uid},
                         .host = hosts_.size() > 1 ? row.host : "",
                         .reason = row.reason});
}

StringId ProfileMaker::string(Id id) {
  if (id == no_id) return 0;
  return strings_.number(id, [this](const StringRow& row) { return profile_.string(row.text); });
}

MappingId ProfileMaker::mapping(Id id) {
  if (id == no_id) return no_mapping;
  return mappings_.number(id, [this](const MappingRow& row) {
    return profile_.mapping({.start = row.start,
                             .limit = row.limit,
                             .offset = row.offset,
                             .file = row.file,
                             .build_id = row.build_id,
                             .vaddr = row.vaddr});
  });
}

FrameId ProfileMaker::frame(Id id) {
  return frames_.number(id, [this](const FrameRow& row) {
    return profile_.frame({.kind = known<FrameKind>(row.kind, 3, "a frame's kind"),
                           .mapping = mapping(row.mapping),
                           .address = row.address,
                           .function = string(row.function),
                           .file = string(row.file),
                           .line = row.line});
  });
}

StackId ProfileMaker::stack(Id id) {
  if (id == no_id) return 0;
  return stacks_.number(id, [this](const StackRow& row) {
    std::vector<FrameId> leaf_first;
    leaf_first.reserve(row.frames.size());
    for (const Id one : row.frames) leaf_first.push_back(frame(one));
    return profile_.stack(leaf_first);
  });
}

std::vector<LabelId> ProfileMaker::labels(const std::vector<Id>& ids) {
  std::vector<LabelId> numbers;
  numbers.reserve(ids.size());
  for (const Id id : ids) numbers.push_back(label(id));
  return numbers;
}

ClientId ProfileMaker::client(Id id) {
  if (id == no_id) return 0;
  return clients_.number(id, [this](const ClientRow& row) {
    const auto rule = known<ClientRule>(row.rule, client_rule_count, "a client's rule");
    return profile_.client(
        {.label = label(row.label), .via = labels(row.via), .rule = rule, .call = stack(row.call)});
  });
}

WakeupId ProfileMaker::wakeup(Id id) {
  if (id == no_id) return 0;
  return wakeups_.number(id, [this](const WakeupRow& row) {
    return profile_.wakeup(
        {.label = label(row.label), .stack = stack(row.stack), .before = labels(row.before)});
  });
}

void ProfileMaker::add_charge(const ChargeRow& row) {
  const SampleKey key{
      .ran_on = label(row.ran_on),
      .served = label(row.served),
      .source = string(row.source),
      .basis = known<Basis>(row.basis, basis_count, "a basis"),
      .stack = stack(row.stack),
      .thread = row.thread,
      .served_thread = row.served_thread,
      .client = client(row.client),
      .resource = known<Resource>(row.resource, every_resource.size(), "a resource"),
      .wakeup = wakeup(row.wakeup)};
  add_up(total_.count, row.samples);
  add_up(total_.ns, row.ns);
  add_up(total_.exact_ns, row.exact_ns);
  add_up(total_.calls, row.calls);
  profile_.add(key, {row.samples, row.ns, row.exact_ns, row.calls});
}

void ProfileMaker::add_figures() {
  for (const FigureRow& row : found_.figures) {
    const bool counter = row.kind == static_cast<uint32_t>(FigureKind::counter);
    auto& figures = counter ? profile_.meta.counters : profile_.meta.user_stacks;
    add_up(figures[profile_.text(string(row.name))], row.value);
  }
}

// Of some hosts alone it says of which.
void ProfileMaker::add_degraded() {
  std::vector<Id> sentences;
  std::unordered_map<Id, std::vector<std::string>> hosts;
  for (const auto& [host, sentence] : found_.degraded) {
    if (!hosts.contains(sentence)) sentences.push_back(sentence);
    hosts[sentence].push_back(host);
  }
  for (const Id id : sentences) {
    std::string text = profile_.text(string(id));
    if (hosts[id].size() < hosts_.size()) text += " (on " + names_of(hosts[id]) + ")";
    profile_.meta.degraded.push_back(std::move(text));
  }
}

}  // namespace

Profile profile_of(const QueryRows& found, ContentReader& reader) {
  return ProfileMaker(found, reader).run();
}

}  // namespace pkprof::store
