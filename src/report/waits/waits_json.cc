// SPDX-License-Identifier: Apache-2.0
#include "report/waits/waits_json.h"

#include "report/json_header.h"
#include "report/waits/waits.h"
#include "report/waits/waits_text.h"

namespace pkprof {

Json waits_array(const Profile& profile, const ReportOptions& options) {
  const Waits waits = waits_of(profile, options.by, options.pids);
  const auto name = [&](GroupId id) {
    return party_json(profile, options.by, waits.groups.all()[id]);
  };
  Json rows = Json::array();
  for (const Waiting& row : waits.rows) {
    Json reasons = Json::array();
    for (const WaitReason& reason : row.reasons) {
      Json chains = Json::array();
      for (const auto& [chain, ns] : reason.chains) {
        if (chain.empty()) continue;
        Json wakers = Json::array();
        for (const GroupId one : chain) wakers.push_back(name(one));
        chains.push_back({{"woken_by", wakers}, {"ns", ns}});
      }
      reasons.push_back({{"kind", reason.kind},
                         {"for", name(reason.whom)},
                         {"ns", reason.ns},
                         {"count", reason.count},
                         {"chains", chains}});
    }
    rows.push_back({{"who", name(row.who)},
                    {"cpu_ns", row.cpu_ns},
                    {"wait_ns", row.wait_ns},
                    {"idle_ns", row.idle_ns},
                    {"kinds", row.kinds},
                    {"reasons", reasons}});
  }
  return rows;
}

std::string waits_json(const Profile& profile, const ReportOptions& options) {
  Json report = json_header(profile, "pkprof.waits/1", options.by);
  report["waits"] = waits_array(profile, options);
  return json_line(report);
}

}  // namespace pkprof
