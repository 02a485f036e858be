// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_usage.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/merge.h"
#include "report/clean.h"
#include "report/page/page_stacks.h"
#include "report/page/page_tables.h"
#include "report/usage/usage.h"
#include "report/usage/usage_words.h"

namespace pkprof {
namespace {

// Of each resource: there may be four.
constexpr size_t most_usage_nodes = 25'000;
// Of a row: who held its locks, or is at the other end. A server may have thousands.
constexpr size_t most_others = 50;

// One table. Groups are numbered anew: of those that nothing names there may be many.
class PageUsage {
 public:
  PageUsage(const Profile& profile, Resource resource, By by, Words& words)
      : profile_(profile),
        by_(by),
        words_(words),
        usage_(usage_of(profile, resource, by, {})),
        numbers_(usage_.groups.all().size(), not_named) {}

  Json run() {
    Json rows = Json::array();
    for (const User& row : usage_.rows) {
      Json& to = rows.emplace_back(user_to_json(row));
      to["who"] = number(row.who);
      if (!row.others.empty()) to["others"] = others_to_json(row);
    }
    return {{"rows", std::move(rows)},
            {"total", user_to_json(usage_.total)},
            {"groups", std::move(groups_)}};
  }

 private:
  static constexpr size_t not_named = SIZE_MAX;

  size_t number(GroupId id) {
    size_t& number = numbers_[id];
    if (number != not_named) return number;
    number = groups_.size();
    const Group& group = usage_.groups.all()[id];
    const bool is_special = group.kind == GroupKind::special;
    groups_.push_back({{"kind", to_string(group.kind)},
                       {"name", usage_party(profile_, by_, group, true)},
                       {"labels", is_special ? std::vector{group.label} : group.processes}});
    return number;
  }

  [[nodiscard]] Json used_to_json(const Used& used) const {
    Json to = {used.amount, used.count};
    if (usage_.resource == Resource::disk) to.push_back(used.time_ns);
    return to;
  }

  Json ways_to_json(const std::map<std::string, Used>& ways) {
    Json to = Json::array();
    for (const auto& [way, used] : ways)
      to.push_back({words_.number(clean(way)), used_to_json(used)});
    return to;
  }

  Json user_to_json(const User& user) {
    Json to = {{"all", used_to_json(user.all)}, {"ways", ways_to_json(user.ways)}};
    if (user.devices.empty()) return to;
    Json& devices = to["devices"] = Json::array();
    for (const auto& [device, ways] : user.devices)
      devices.push_back({words_.number(clean(device)), ways_to_json(ways)});
    return to;
  }

  Json others_to_json(const User& user) {
    std::vector<std::pair<GroupId, uint64_t>> others(user.others.begin(), user.others.end());
    std::ranges::stable_sort(others, std::greater(), &std::pair<GroupId, uint64_t>::second);
    if (others.size() > most_others) others.resize(most_others);
    Json to = Json::array();
    for (const auto& [other, amount] : others) to.push_back({number(other), amount});
    return to;
  }

  const Profile& profile_;
  const By by_;
  Words& words_;
  const Usage usage_;
  std::vector<size_t> numbers_;  // by GroupId
  Json groups_ = Json::array();
};

Json resource_to_json(const Profile& profile, Resource resource) {
  Words words;
  Json by_what =
      tables_to_json(profile, [&](By by) { return PageUsage(profile, resource, by, words).run(); });
  const PageStacks stacks = page_stacks(of_resource(profile, resource), most_usage_nodes);
  Json samples = own_samples_to_json(stacks);
  Json& basis = samples["basis"] = Json::array();
  for (const PageSample& sample : stacks.samples) basis.push_back(static_cast<int>(sample.basis));
  const auto [question, count] = words_of(resource);
  Json to = {{"question", question},     {"count", count},        {"bytes", is_in_bytes(resource)},
             {"by", std::move(by_what)}, {"words", words.take()}, {"samples", std::move(samples)}};
  add_nodes(to, stacks);
  return to;
}

}  // namespace

Json resources_to_json(const Profile& profile) {
  Json resources = Json::object();
  for (const Resource resource : used_resources(profile))
    resources[std::string(to_string(resource))] = resource_to_json(profile, resource);
  return resources;
}

}  // namespace pkprof
