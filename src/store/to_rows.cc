// SPDX-License-Identifier: Apache-2.0
#include "store/to_rows.h"

#include <span>

#include "model/container.h"
#include "store/content_id.h"
#include "store/failure.h"

namespace pkprof::store {
namespace {

constexpr uint32_t most_cpus = 1U << 20;

// Databases have signed numbers.
uint64_t figure(uint64_t value, const std::string& what) {
  if (value > INT64_MAX) throw Failure{"the cut's " + what + " is out of range"};
  return value;
}

class RowMaker {
 public:
  RowMaker(const Cut& cut, uint64_t seed) : cut_(cut), profile_(cut.profile), seed_(seed) {}

  CutAsRows run() {
    put_cut();
    for (const Label& label : profile_.labels()) put_label(label);
    for (const Mapping& m : profile_.mappings())
      mappings_.push_back(add(rows_.content.mappings, MappingRow{0, m.start, m.limit, m.offset,
                                                                 m.file, m.build_id, m.vaddr}));
    for (const Frame& frame : profile_.frames()) put_frame(frame);
    for (StackId id = 0; id < profile_.stack_count(); ++id) put_stack(profile_.frames_of(id));
    for (const Client& client : profile_.clients()) put_client(client);
    for (const Wakeup& wakeup : profile_.wakeups()) put_wakeup(wakeup);
    for (const Profile::Sample& sample : profile_.samples()) put_charge(sample);
    put_lists();
    return std::move(rows_);
  }

 private:
  // Appends a row with the id of its content.
  template <typename Row>
  Id add(std::vector<Row>& rows, Row row) {
    row.id = content_id(seed_, row);
    rows.push_back(std::move(row));
    return rows.back().id;
  }

  void put_cut();
  void put_label(const Label& label);
  void put_frame(const Frame& frame);
  void put_stack(std::span<const FrameId> leaf_first);
  void put_client(const Client& client);
  void put_wakeup(const Wakeup& wakeup);
  void put_charge(const Profile::Sample& sample);
  void put_lists();
  Id text(const std::string& text);
  Id string(StringId id);
  [[nodiscard]] std::vector<Id> labels(const std::vector<LabelId>& ids) const;

  const Cut& cut_;
  const Profile& profile_;
  const uint64_t seed_;
  CutAsRows rows_;
  // By the profile's own numbers.
  std::vector<Id> labels_;
  std::vector<Id> mappings_;
  std::vector<Id> frames_;
  std::vector<Id> stacks_;
  std::vector<Id> clients_;
  std::vector<Id> wakeups_;
  std::vector<Id> strings_;  // no_id while not asked for
};

void RowMaker::put_cut() {
  const Meta& m = profile_.meta;
  if (m.cpus > most_cpus) throw Failure{"the cut's number of CPUs is out of range"};
  ContentHash identity(seed_);
  identity.add(std::string_view(Table<CutRow>::name));
  identity.add(std::string_view(cut_.host));
  identity.add(std::string_view(cut_.boot_id));
  identity.add(cut_.start_unix_ns);
  rows_.cut.cut = {.id = identity.id(),
                   .host = cut_.host,
                   .boot_id = cut_.boot_id,
                   .start_unix_ns = figure(cut_.start_unix_ns, "start"),
                   .kernel = m.kernel,
                   .command = m.command,
                   .counted_by = m.counted_by,
                   .cpus = m.cpus,
                   .measured = m.measured,
                   .frequency_hz = figure(m.frequency_hz, "frequency"),
                   .counted_functions = figure(m.counted_functions, "number of functions"),
                   .duration_ns = figure(m.duration_ns, "duration"),
                   .cpu_ns = figure(m.cpu_ns(), "CPU time"),
                   .paused_ns = figure(m.paused_ns, "pause"),
                   .samples_taken = figure(m.samples_taken, "number of samples"),
                   .samples_lost = figure(m.samples_lost, "number of lost samples"),
                   .cost_kernel_ns = figure(m.cost_kernel_ns, "cost"),
                   .cost_user_ns = figure(m.cost_user_ns, "cost"),
                   .unwatched_ns = figure(m.unwatched_ns, "unwatched time")};
}

Id RowMaker::text(const std::string& text) {
  return text.empty() ? no_id : add(rows_.content.strings, StringRow{.text = text});
}

Id RowMaker::string(StringId id) {
  if (id >= strings_.size()) strings_.resize(id + 1, no_id);
  if (id != 0 && strings_[id] == no_id) strings_[id] = text(profile_.text(id));
  return strings_[id];
}

void RowMaker::put_label(const Label& label) {
  if (!label.host.empty())
    throw Failure{"it is a profile of several machines; put in the profiles that it was made of"};
  const Container& c = label.container;
  const Container shown = container_of(label);
  labels_.push_back(add(rows_.content.labels,
                        LabelRow{.kind = static_cast<uint32_t>(label.kind),
                                 .host = label.kind == LabelKind::process ? cut_.host : "",
                                 .pid = label.pid,
                                 .start_ns = label.start_ns,
                                 .kthread = label.kthread,
                                 .without_pid = label.without_pid,
                                 .parent_pid = label.parent_pid,
                                 .comm = label.comm,
                                 .first_comm = label.first_comm,
                                 .exe = label.exe,
                                 .cgroup = label.cgroup,
                                 .container_id = c.id,
                                 .runtime = c.runtime,
                                 .container_name = c.name,
                                 .image = c.image,
                                 .pod = c.pod,
                                 .pod_namespace = c.pod_namespace,
                                 .pod_uid = c.pod_uid,
                                 .reason = label.reason,
                                 .container = shown.id.empty() ? "" : container_title(shown),
                                 .unit = unit_of_cgroup(label.cgroup, shown)}));
}

void RowMaker::put_frame(const Frame& frame) {
  frames_.push_back(
      add(rows_.content.frames,
          FrameRow{.kind = static_cast<uint32_t>(frame.kind),
                   .mapping = frame.mapping == no_mapping ? no_id : mappings_[frame.mapping],
                   .address = frame.address,
                   .function = string(frame.function),
                   .file = string(frame.file),
                   .line = frame.line}));
}

void RowMaker::put_stack(std::span<const FrameId> leaf_first) {
  StackRow row;
  for (const FrameId frame : leaf_first) row.frames.push_back(frames_[frame]);
  stacks_.push_back(row.frames.empty() ? no_id : add(rows_.content.stacks, std::move(row)));
}

std::vector<Id> RowMaker::labels(const std::vector<LabelId>& ids) const {
  std::vector<Id> rows;
  rows.reserve(ids.size());
  for (const LabelId id : ids) rows.push_back(labels_[id]);
  return rows;
}

// The first client and the first wakeup mean none.
void RowMaker::put_client(const Client& client) {
  const bool none = clients_.empty();
  clients_.push_back(
      none ? no_id
           : add(rows_.content.clients, ClientRow{.label = labels_[client.label],
                                                  .rule = static_cast<uint32_t>(client.rule),
                                                  .via = labels(client.via),
                                                  .call = stacks_[client.call]}));
}

void RowMaker::put_wakeup(const Wakeup& wakeup) {
  const bool none = wakeups_.empty();
  wakeups_.push_back(none ? no_id
                          : add(rows_.content.wakeups, WakeupRow{.label = labels_[wakeup.label],
                                                                 .stack = stacks_[wakeup.stack],
                                                                 .before = labels(wakeup.before)}));
}

void RowMaker::put_charge(const Profile::Sample& sample) {
  const auto& [key, value] = sample;
  rows_.cut.charges.push_back({.cut = rows_.cut.cut.id,
                               .number = static_cast<uint32_t>(rows_.cut.charges.size()),
                               .resource = static_cast<uint32_t>(key.resource),
                               .ran_on = labels_[key.ran_on],
                               .served = labels_[key.served],
                               .source = string(key.source),
                               .basis = static_cast<uint32_t>(key.basis),
                               .stack = stacks_[key.stack],
                               .client = clients_[key.client],
                               .wakeup = wakeups_[key.wakeup],
                               .thread = key.thread,
                               .served_thread = key.served_thread,
                               .samples = figure(value.count, "number of samples"),
                               .ns = figure(value.ns, "time of a sample"),
                               .exact_ns = figure(value.exact_ns, "time of a sample"),
                               .calls = figure(value.calls, "number of calls")});
}

void RowMaker::put_lists() {
  const Id cut = rows_.cut.cut.id;
  for (const auto& [pair, count] : profile_.requests)
    rows_.cut.requests.push_back(
        {cut, labels_[pair.first], clients_[pair.second], figure(count, "number of requests")});
  for (const auto& [thread, name] : profile_.thread_names())
    rows_.cut.threads.push_back({cut, labels_[thread.first], thread.second, text(name)});
  const auto put_figures = [&](FigureKind kind, const std::map<std::string, uint64_t>& figures) {
    for (const auto& [name, value] : figures)
      rows_.cut.figures.push_back(
          {cut, static_cast<uint32_t>(kind), text(name), figure(value, "counter " + name)});
  };
  put_figures(FigureKind::counter, profile_.meta.counters);
  put_figures(FigureKind::user_stacks, profile_.meta.user_stacks);
  for (const std::string& sentence : profile_.meta.degraded)
    rows_.cut.degraded.push_back(
        {cut, static_cast<uint32_t>(rows_.cut.degraded.size()), text(sentence)});
  for (const auto& [tag, value] : cut_.labels) rows_.cut.tags.push_back({cut, tag, value});
}

}  // namespace

CutAsRows rows_of(const Cut& cut, uint64_t seed) {
  return RowMaker(cut, seed).run();
}

}  // namespace pkprof::store
