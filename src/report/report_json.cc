// SPDX-License-Identifier: Apache-2.0
// See report_json.h. Keys in the order of the contract.
#include "report/report_json.h"

#include <nlohmann/json.hpp>

#include "report/degraded.h"
#include "report/ledger.h"

namespace pkprof {

namespace {

using Json = nlohmann::ordered_json;

Json process_to_json(const Profile& profile, const LedgerRow& row) {
  const Label& label = profile.labels()[row.label];
  Json sources = Json::object();
  for (const auto& [source, ns] : row.sources) sources[source] = ns;
  Json basis = Json::object();
  for (int i = 0; i < basis_count; ++i) {
    if (row.basis[i] != 0) basis[std::string(to_string(static_cast<Basis>(i)))] = row.basis[i];
  }
  return {{"pid", label.pid},         {"comm", label.comm},
          {"exe", label.exe},         {"cgroup", label.cgroup},
          {"user_ns", row.user_ns},   {"own_ns", row.own_ns},
          {"async_ns", row.async_ns}, {"stolen_ns", row.stolen_ns},
          {"sources", sources},       {"basis", basis}};
}

Json party_to_json(const Profile& profile, LabelId id) {
  if (id == left_out) return "OTHER";
  const Label& label = profile.labels()[id];
  switch (label.kind) {
    case LabelKind::process:
      return label.pid;
    case LabelKind::kernel:
      return "KERNEL";
    case LabelKind::idle:
      return "IDLE";
    case LabelKind::other:
      return "OTHER";
    case LabelKind::unclaimed:
      return "UNCLAIMED";
  }
  return "OTHER";
}

Json header_to_json(const Profile& profile) {
  const Meta& meta = profile.meta;
  const uint64_t cost_ns = meta.cost_kernel_ns + meta.cost_user_ns;
  const double fraction =
      profile.cpu_ns() == 0 ? 0
                            : static_cast<double>(cost_ns) / static_cast<double>(profile.cpu_ns());
  return {{"schema", "pkprof.report/1"},
          {"kernel", meta.kernel},
          {"cpus", meta.cpus},
          {"duration_ns", meta.duration_ns},
          {"frequency_hz", meta.frequency_hz},
          {"cpu_ns", profile.cpu_ns()},
          {"samples", {{"taken", meta.samples_taken}, {"lost", meta.samples_lost}}},
          {"cost",
           {{"kernel_ns", meta.cost_kernel_ns},
            {"user_ns", meta.cost_user_ns},
            {"fraction", fraction},
            {"hooks_on", watched_share(meta)}}},
          {"degraded", degraded_sentences(meta)}};
}

}  // namespace

std::string report_json(const Profile& profile, const ReportOptions& options) {
  const Ledger ledger = build_ledger(profile, options.pids);
  Json report = header_to_json(profile);
  Json& processes = report["processes"] = Json::array();
  for (const LedgerRow& row : ledger.processes) processes.push_back(process_to_json(profile, row));
  report["kernel_ns"] = ledger.kernel_ns;
  report["idle_ns"] = ledger.idle_ns;
  report["other_ns"] = ledger.other_ns;
  Json& unclaimed = report["unclaimed"] = Json::object();
  for (const auto& [reason, ns] : ledger.unclaimed) unclaimed[reason] = ns;
  Json& flows = report["flows"] = Json::array();
  for (const Flow& flow : ledger.flows) {
    flows.push_back({{"ran_on", party_to_json(profile, flow.ran_on)},
                     {"served", party_to_json(profile, flow.served)},
                     {"source", profile.text(flow.source)},
                     {"ns", flow.ns}});
  }
  constexpr bool ensure_ascii = true;
  return report.dump(-1, ' ', ensure_ascii, Json::error_handler_t::replace) + "\n";
}

}  // namespace pkprof
