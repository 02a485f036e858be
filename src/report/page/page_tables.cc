// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_tables.h"

#include <utility>

namespace pkprof {

Json tables_to_json(const Profile& profile, const std::function<Json(By)>& table) {
  Json tables = Json::object();
  for (const By by : every_by) {
    if (by == By::client || (by == By::thread && !has_threads(profile)) ||
        (by == By::host && !has_hosts(profile)))
      continue;
    tables[std::string(to_string(by))] = table(by);
  }
  return tables;
}

void add_nodes(Json& to, const PageStacks& stacks) {
  Json parents = Json::array();
  Json functions = Json::array();
  for (size_t i = 0; i < stacks.nodes.size(); ++i) {
    // How far back: small numbers, which pack well.
    parents.push_back(i - stacks.nodes[i].parent);
    functions.push_back(i ? stacks.nodes[i].function : 0);
  }
  to["nodes"] = {{"up", std::move(parents)}, {"function", std::move(functions)}};
  to["small"] = stacks.small_ns ? Json(stacks.small) : Json(nullptr);
  to["small_ns"] = stacks.small_ns;
}

Json own_samples_to_json(const PageStacks& stacks) {
  Json who = Json::array();
  Json node = Json::array();
  Json ns = Json::array();
  for (const PageSample& sample : stacks.samples) {
    who.push_back(sample.served);
    node.push_back(sample.node);
    ns.push_back(sample.ns);
  }
  return {{"who", std::move(who)}, {"node", std::move(node)}, {"ns", std::move(ns)}};
}

}  // namespace pkprof
