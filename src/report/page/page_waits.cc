// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_waits.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/merge.h"
#include "model/source.h"
#include "report/clean.h"
#include "report/page/page_tables.h"
#include "report/waits/wait_words.h"
#include "report/waits/waits.h"

namespace pkprof {
namespace {

// Where one waits there is less code than where one works.
constexpr size_t most_wait_nodes = 50'000;

struct Tables {
  Words kinds;
  Words sentences;
};

Json row_to_json(const Waiting& row, const std::vector<std::string>& names, Tables& tables) {
  Json kinds = Json::array();
  for (const auto& [kind, ns] : row.kinds) kinds.push_back({tables.kinds.number(clean(kind)), ns});
  Json reasons = Json::array();
  for (const WaitReason& reason : row.reasons) {
    const std::string why =
        wait_sentence(clean(reason.kind), names[reason.whom], reason.whom == row.who);
    Json to = {tables.kinds.number(clean(reason.kind)), reason.whom, reason.ns, reason.count,
               tables.sentences.number(why)};
    if (const WakerChain chain = main_chain(reason); chain.ns) {
      to.push_back(chain.ns);
      to.push_back(chain.wakers);
    }
    reasons.push_back(std::move(to));
  }
  return {{"who", row.who},      {"cpu", row.cpu_ns},         {"wait", row.wait_ns},
          {"idle", row.idle_ns}, {"kinds", std::move(kinds)}, {"reasons", std::move(reasons)}};
}

Json table_to_json(const Profile& profile, By by, Tables& tables) {
  const Waits waits = waits_of(profile, by, {});
  std::vector<std::string> names;
  Json groups = Json::array();
  for (const Group& group : waits.groups.all()) {
    names.push_back(wait_party(profile, by, group, true));
    groups.push_back(
        {{"kind", to_string(group.kind)}, {"name", names.back()}, {"labels", group.processes}});
  }
  Json rows = Json::array();
  for (const Waiting& row : waits.rows) rows.push_back(row_to_json(row, names, tables));
  return {{"groups", std::move(groups)}, {"rows", std::move(rows)}};
}

Json samples_to_json(const Profile& profile, const PageStacks& stacks, Words& kinds) {
  Json kind = Json::array();
  Json waker = Json::array();
  Json waker_node = Json::array();
  for (const PageSample& sample : stacks.samples) {
    kind.push_back(kinds.number(clean(wait_kind(profile.text(sample.source)))));
    waker.push_back(sample.waker == not_woken ? Json(-1) : Json(sample.waker));
    waker_node.push_back(sample.waker_node);
  }
  Json to = own_samples_to_json(stacks);
  to["kind"] = std::move(kind);
  to["waker"] = std::move(waker);
  to["waker_node"] = std::move(waker_node);
  return to;
}

}  // namespace

Json waits_to_json(const Profile& profile) {
  Tables tables;
  Json by_what = tables_to_json(profile, [&](By by) { return table_to_json(profile, by, tables); });
  const Profile waits = of_resource(profile, Resource::wait);
  const PageStacks stacks = page_stacks(waits, most_wait_nodes);
  Json samples = samples_to_json(waits, stacks, tables.kinds);
  Json to = {{"by", std::move(by_what)},
             {"kinds", tables.kinds.take()},
             {"sentences", tables.sentences.take()},
             {"samples", std::move(samples)}};
  add_nodes(to, stacks);
  return to;
}

}  // namespace pkprof
