// SPDX-License-Identifier: Apache-2.0
// See report_json.h. Keys in the order of the contract.
#include "report/report_json.h"

#include <map>
#include <utility>

#include "report/clients.h"
#include "report/json_header.h"
#include "report/ledger.h"

namespace pkprof {

namespace {

Json container_to_json(const Container& container) {
  Json to = {{"id", container.id}};
  for (const auto& [key, text] : {std::pair{"runtime", &container.runtime},
                                  {"name", &container.name},
                                  {"image", &container.image},
                                  {"pod", &container.pod},
                                  {"pod_namespace", &container.pod_namespace},
                                  {"pod_uid", &container.pod_uid}})
    if (!text->empty()) to[key] = *text;
  return to;
}

// What a process, a thread and a group have in common.
void put_times(const Ledger& ledger, const LedgerRow& row, bool grouped, Json& to) {
  Json sources = Json::object();
  for (const auto& [source, ns] : row.sources) sources[source] = ns;
  Json basis = Json::object();
  for (int i = 0; i < basis_count; ++i) {
    if (row.basis[i] != 0) basis[std::string(to_string(static_cast<Basis>(i)))] = row.basis[i];
  }
  to["user_ns"] = row.user_ns;
  to["own_ns"] = row.own_ns;
  to["async_ns"] = row.async_ns;
  to["stolen_ns"] = row.stolen_ns;
  if (grouped) {
    to["within_ns"] = row.within_ns;
    to["seems_ns"] = row.seems_ns;
  }
  if (ledger.has_clients) {
    to["for_others_ns"] = row.for_others_ns;
    to["with_servers_ns"] = row.with_servers_ns();
  }
  to["sources"] = std::move(sources);
  to["basis"] = std::move(basis);
}

using Servers = std::map<LabelId, Server>;

Json process_to_json(const Profile& profile, const Ledger& ledger, const LedgerRow& row,
                     const Servers& servers) {
  const Label& label = profile.labels()[row.label];
  Json to = {
      {"pid", label.pid}, {"comm", label.comm}, {"exe", label.exe}, {"cgroup", label.cgroup}};
  if (!label.host.empty()) to["host"] = label.host;
  if (!label.first_comm.empty() && label.first_comm != label.comm)
    to["first_comm"] = label.first_comm;
  if (label.kind == LabelKind::remote) to["address"] = label.name();
  const Container container = container_of(label);
  if (!container.id.empty()) to["container"] = container_to_json(container);
  put_times(ledger, row, false, to);
  if (const auto server = servers.find(row.label); server != servers.end())
    to["for_clients"] = for_clients(profile, server->second);
  return to;
}

Json group_to_json(const Profile& profile, const Ledger& ledger, const LedgerRow& row) {
  const Group& group = ledger.groups[row.group];
  const Label& label = profile.labels()[row.label];
  Json to = {{"kind", to_string(group.kind)}, {"name", group_title(profile, ledger.by, group)}};
  if (ledger.by == By::thread) {
    to["pid"] = label.pid;
    to["tid"] = group.thread ? Json(group.thread) : Json(nullptr);
    to["comm"] = group.name.empty() ? label.comm : group.name;
    to["process"] = label.comm;
  } else {
    Json& pids = to["pids"] = Json::array();
    for (const LabelId id : group.processes) pids.push_back(profile.labels()[id].pid);
  }
  if (ledger.by == By::container && group.kind == GroupKind::member)
    to["container"] = container_to_json(container_of(label));
  put_times(ledger, row, true, to);
  return to;
}

// Processes by pid, groups by their place in "groups".
Json party_to_json(const Profile& profile, const Ledger& ledger,
                   const std::vector<size_t>& place_of, GroupId id) {
  const Group& group = ledger.groups[id];
  if (group.label == left_out) return "OTHER";
  const Label& label = profile.labels()[group.label];
  switch (label.kind) {
    case LabelKind::process:
      if (ledger.by != By::pid) return place_of[id];
      return label.pid;
    case LabelKind::kernel:
      return "KERNEL";
    case LabelKind::idle:
      return "IDLE";
    case LabelKind::other:
      return "OTHER";
    case LabelKind::unclaimed:
      return "UNCLAIMED";
    case LabelKind::steal:
      return "STEAL";
    case LabelKind::remote:
      return label.name();
  }
  return "OTHER";
}

bool is_steal(const Profile& profile, const Group& group) {
  return group.label != left_out && profile.labels()[group.label].kind == LabelKind::steal;
}

}  // namespace

Json report_object(const Profile& profile, const ReportOptions& options) {
  const Ledger ledger = build_ledger(profile, options.pids, options.by);
  Json report = json_header(profile, "pkprof.report/1", options.by);
  std::vector<size_t> place_of(ledger.groups.size());
  if (options.by == By::pid) {
    Servers servers;
    for (Server& server : servers_of(profile, options.pids))
      servers.emplace(server.label, std::move(server));
    Json& rows = report["processes"] = Json::array();
    for (const LedgerRow& row : ledger.processes)
      rows.push_back(process_to_json(profile, ledger, row, servers));
  } else {
    report["by"] = to_string(options.by);
    Json& rows = report["groups"] = Json::array();
    for (const LedgerRow& row : ledger.processes) {
      place_of[row.group] = rows.size();
      rows.push_back(group_to_json(profile, ledger, row));
    }
  }
  report["kernel_ns"] = ledger.kernel_ns;
  report["idle_ns"] = ledger.idle_ns;
  report["steal_ns"] = ledger.steal_ns;
  report["other_ns"] = ledger.other_ns;
  if (ledger.has_clients) {
    report["other_for_others_ns"] = ledger.other_for_others_ns;
    report["other_with_servers_ns"] = ledger.other_with_servers_ns();
  }
  Json& unclaimed = report["unclaimed"] = Json::object();
  for (const auto& [reason, ns] : ledger.unclaimed) unclaimed[reason] = ns;
  Json& flows = report["flows"] = Json::array();
  for (const Flow& flow : ledger.flows) {
    if (is_steal(profile, ledger.groups[flow.served])) continue;  // it is steal_ns
    flows.push_back({{"ran_on", party_to_json(profile, ledger, place_of, flow.ran_on)},
                     {"served", party_to_json(profile, ledger, place_of, flow.served)},
                     {"source", profile.text(flow.source)},
                     {"ns", flow.ns}});
  }
  return report;
}

std::string report_json(const Profile& profile, const ReportOptions& options) {
  return json_line(report_object(profile, options));
}

}  // namespace pkprof
