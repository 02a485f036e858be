// SPDX-License-Identifier: Apache-2.0
// All of a profile as one JSON object, schema "pkprof.profile/1": tables that refer to each other
// by place, as in the Profile itself. Strings are as they were recorded, but for invalid UTF-8.
#include <nlohmann/json.hpp>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "model/merge.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

using Json = nlohmann::ordered_json;

Json meta_to_json(const Meta& meta) {
  return {{"kernel", meta.kernel},
          {"host", meta.host},
          {"command", meta.command},
          {"cpus", meta.cpus},
          {"start_unix_ns", meta.start_unix_ns},
          {"duration_ns", meta.duration_ns},
          {"paused_ns", meta.paused_ns},
          {"frequency_hz", meta.frequency_hz},
          {"samples", {{"taken", meta.samples_taken}, {"lost", meta.samples_lost}}},
          {"watched", watched_share(meta)},
          {"cost", {{"kernel_ns", meta.cost_kernel_ns}, {"user_ns", meta.cost_user_ns}}},
          {"measured", meta.measured},
          {"degraded", meta.degraded},
          {"counters", meta.counters}};
}

Json label_to_json(const Label& label) {
  Json to = {{"kind", to_string(label.kind)}};
  if (label.kind == LabelKind::process) {
    to["pid"] = label.pid;
    to["start_ns"] = label.start_ns;
    to["kthread"] = label.kthread;
    to["parent_pid"] = label.parent_pid;
    to["comm"] = label.comm;
    to["exe"] = label.exe;
    to["cgroup"] = label.cgroup;
    if (!label.host.empty()) to["host"] = label.host;
  }
  if (!label.reason.empty()) to["reason"] = label.reason;
  return to;
}

Json frame_to_json(const Profile& profile, const Frame& frame) {
  Json to = {{"kind", to_string(frame.kind)}, {"function", profile.text(frame.function)}};
  if (frame.kind == FrameKind::pseudo) return to;
  to["address"] = frame.address;
  if (frame.mapping != no_mapping) to["mapping"] = frame.mapping;
  if (frame.file) to["file"] = profile.text(frame.file);
  if (frame.line) to["line"] = frame.line;
  return to;
}

Json mapping_to_json(const Mapping& mapping) {
  return {{"start", mapping.start},
          {"limit", mapping.limit},
          {"offset", mapping.offset},
          {"file", mapping.file},
          {"build_id", mapping.build_id}};
}

Json client_to_json(const Client& client) {
  Json to = {{"label", client.label}, {"via", client.via}, {"rule", to_string(client.rule)}};
  if (client.call) to["call"] = client.call;  // a stack
  return to;
}

Json wakeup_to_json(const Wakeup& wakeup) {
  return {{"label", wakeup.label}, {"stack", wakeup.stack}, {"before", wakeup.before}};
}

Json sample_to_json(const Profile& profile, const Profile::Sample& sample) {
  const auto& [key, value] = sample;
  Json to = {{"ran_on", key.ran_on},
             {"served", key.served},
             {"source", profile.text(key.source)},
             {"basis", to_string(key.basis)},
             {"stack", key.stack}};
  if (key.thread) to["thread"] = key.thread;
  if (key.served_thread) to["served_thread"] = key.served_thread;
  if (key.client) to["client"] = key.client;
  if (key.wakeup) to["wakeup"] = key.wakeup;
  to["samples"] = value.count;
  to["ns"] = value.ns;
  if (value.exact_ns) to["exact_ns"] = value.exact_ns;
  if (value.calls) to["calls"] = value.calls;
  return to;
}

Json requests_to_json(const Profile& profile) {
  Json requests = Json::array();
  for (const auto& [pair, count] : profile.requests)
    requests.push_back({{"server", pair.first}, {"client", pair.second}, {"requests", count}});
  return requests;
}

Json timeline_to_json(const Profile& profile) {
  Json cells = Json::array();
  for (const TimelineCell& cell : profile.timeline)
    cells.push_back({{"slot", cell.slot},
                     {"ran_on", cell.ran_on},
                     {"served", cell.served},
                     {"source", profile.text(cell.source)},
                     {"ns", cell.ns}});
  return {{"slot_ns", profile.meta.slot_ns}, {"cells", std::move(cells)}};
}

}  // namespace

static Result<std::string> export_json(const Profile& profile, const ExportOptions& options) {
  Json to = {{"schema", "pkprof.profile/1"}, {"meta", meta_to_json(profile.meta)}};
  Json& labels = to["labels"] = Json::array();
  for (const Label& label : profile.labels()) labels.push_back(label_to_json(label));
  Json& mappings = to["mappings"] = Json::array();
  for (const Mapping& mapping : profile.mappings()) mappings.push_back(mapping_to_json(mapping));
  Json& frames = to["frames"] = Json::array();
  for (const Frame& frame : profile.frames()) frames.push_back(frame_to_json(profile, frame));
  Json& stacks = to["stacks"] = Json::array();  // of frames, leaf first
  for (StackId id = 0; id < profile.stack_count(); ++id) stacks.push_back(profile.frames_of(id));
  Json& threads = to["threads"] = Json::array();
  for (const auto& [thread, comm] : profile.thread_names())
    threads.push_back({{"label", thread.first}, {"thread", thread.second}, {"comm", comm}});
  if (profile.clients().size() > 1)
    for (const Client& client : profile.clients()) to["clients"].push_back(client_to_json(client));
  if (has_resource(profile, Resource::wait))
    for (const Wakeup& wakeup : profile.wakeups()) to["wakeups"].push_back(wakeup_to_json(wakeup));
  if (!profile.requests.empty()) to["requests"] = requests_to_json(profile);
  Json& samples = to["samples"] = Json::array();
  for (const Profile::Sample& sample : profile.samples())
    if (is_served_to(profile, sample.key, options.pids))
      samples.push_back(sample_to_json(profile, sample));
  to["timeline"] = timeline_to_json(profile);
  return deliver(to.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n", options);
}

// options.pids leaves out what was served to others; there is no OTHER.
extern const ExportFormat json_format{"json", "all that is in the profile", export_json};

}  // namespace pkprof
