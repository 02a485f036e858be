// SPDX-License-Identifier: Apache-2.0
// Long tables are written by column: a name stands once, and equal numbers lie side by side.
#include "report/page/page_data.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/merge.h"
#include "report/clean.h"
#include "report/clients.h"
#include "report/ledger.h"
#include "report/page/page_stacks.h"
#include "report/page/page_tables.h"
#include "report/page/page_usage.h"
#include "report/page/page_waits.h"
#include "report/usage/usage.h"

namespace pkprof {
namespace {

Json labels_to_json(const Profile& profile) {
  Json labels = Json::array();
  for (const Label& label : profile.labels()) {
    Json to = {{"kind", to_string(label.kind)}, {"name", clean(label.name())}};
    if (label.kind == LabelKind::process) {
      to["pid"] = label.pid;
      to["comm"] = clean(label.host_prefix() + label.comm);
      if (label.kthread) to["kthread"] = true;
      if (!label.exe.empty()) to["exe"] = clean(label.exe);
      if (!label.cgroup.empty()) to["cgroup"] = clean(label.cgroup);
    }
    labels.push_back(std::move(to));
  }
  return labels;
}

Json functions_to_json(const PageStacks& stacks) {
  Json names = Json::array();
  Json kinds = Json::array();
  Json places = Json::array();
  Json where_of = Json::array();
  std::unordered_map<std::string, size_t> place_of;
  for (const Function& function : stacks.functions.functions) {
    const std::string place = clean(function.where);
    const auto [it, fresh] = place_of.try_emplace(place, places.size());
    if (fresh) places.push_back(place);
    names.push_back(clean(function.name));
    kinds.push_back(static_cast<int>(function.kind));
    where_of.push_back(it->second);
  }
  return {{"name", std::move(names)},
          {"kind", std::move(kinds)},
          {"place", std::move(where_of)},
          {"places", std::move(places)}};
}

Json stacks_to_json(const PageStacks& stacks) {
  Json to = {{"functions", functions_to_json(stacks)}};
  add_nodes(to, stacks);
  return to;
}

// Tables of times by who ran, who was served and by what.
class Times {
 public:
  void add(LabelId ran_on, LabelId served, StringId source, Part part, bool taken, uint64_t ns) {
    ran_on_.push_back(ran_on);
    served_.push_back(served);
    source_.push_back(source);
    part_.push_back(static_cast<int>(part));
    taken_.push_back(taken ? 1 : 0);
    ns_.push_back(ns);
  }
  Json take() {
    return {{"ran_on", std::move(ran_on_)}, {"served", std::move(served_)},
            {"source", std::move(source_)}, {"part", std::move(part_)},
            {"taken", std::move(taken_)},   {"ns", std::move(ns_)}};
  }

 private:
  Json ran_on_ = Json::array();
  Json served_ = Json::array();
  Json source_ = Json::array();
  Json part_ = Json::array();
  Json taken_ = Json::array();
  Json ns_ = Json::array();
};

// To whom each sample is charged by client.
Json charges_to_json(const PageStacks& stacks) {
  Json for_client = Json::array();
  Json served = Json::array();
  Json part = Json::array();
  Json taken = Json::array();
  Json call = Json::array();
  for (const PageSample& sample : stacks.samples) {
    call.push_back(sample.call);
    for_client.push_back(sample.for_client ? 1 : 0);
    served.push_back(sample.by_client.served);
    part.push_back(static_cast<int>(sample.by_client.part));
    taken.push_back(sample.by_client.taken ? 1 : 0);
  }
  return {{"for_client", std::move(for_client)},
          {"served", std::move(served)},
          {"part", std::move(part)},
          {"taken", std::move(taken)},
          {"call", std::move(call)}};
}

Json samples_to_json(const PageStacks& stacks) {
  Times times;
  Json basis = Json::array();
  Json nodes = Json::array();
  for (const PageSample& sample : stacks.samples) {
    times.add(sample.ran_on, sample.served, sample.source, sample.part, sample.taken, sample.ns);
    basis.push_back(static_cast<int>(sample.basis));
    nodes.push_back(sample.node);
  }
  Json to = times.take();
  to["basis"] = std::move(basis);
  to["node"] = std::move(nodes);
  return to;
}

Json timeline_to_json(const Profile& profile) {
  Times times;
  Json slots = Json::array();
  for (const TimelineCell& cell : profile.timeline) {
    const SampleKey key{.ran_on = cell.ran_on, .served = cell.served, .source = cell.source};
    slots.push_back(cell.slot);
    times.add(cell.ran_on, cell.served, cell.source, part_of(profile, key), is_taken(profile, key),
              cell.ns);
  }
  Json to = times.take();
  to["slot"] = std::move(slots);
  to["slot_ns"] = profile.meta.slot_ns;
  return to;
}

// Strings that are a sample's source; others are names of functions and files.
Json sources_to_json(const Profile& profile) {
  Json sources = Json::object();
  const auto put = [&](StringId id) { sources[std::to_string(id)] = clean(profile.text(id)); };
  for (const auto& [key, value] : profile.samples()) put(key.source);
  for (const TimelineCell& cell : profile.timeline) put(cell.source);
  return sources;
}

Json row_to_json(const LedgerRow& row) {
  Json sources = Json::object();
  for (const auto& [source, ns] : row.sources) sources[clean(source)] = ns;
  Json basis = Json::array();
  for (const uint64_t ns : row.basis) basis.push_back(ns);
  return {{"group", row.group},    {"user", row.user_ns},           {"own", row.own_ns},
          {"async", row.async_ns}, {"stolen", row.stolen_ns},       {"within", row.within_ns},
          {"seems", row.seems_ns}, {"sources", std::move(sources)}, {"basis", std::move(basis)}};
}

Json group_to_json(const Profile& profile, By by, const Group& group) {
  return {{"kind", to_string(group.kind)},
          {"name", clean(group_title(profile, by, group))},
          {"labels", group.processes}};
}

Json ledger_to_json(const Profile& profile, By by) {
  const Ledger ledger = build_ledger(profile, {}, by);
  Json groups = Json::array();
  for (const Group& group : ledger.groups) groups.push_back(group_to_json(profile, by, group));
  Json rows = Json::array();
  for (const LedgerRow& row : ledger.processes) rows.push_back(row_to_json(row));
  Json unclaimed = Json::object();
  for (const auto& [reason, ns] : ledger.unclaimed) unclaimed[clean(reason)] = ns;
  Json flows = Json::array();
  for (const Flow& flow : ledger.flows) {
    const bool taken = is_taken(profile, ledger, flow);
    flows.push_back({flow.ran_on, flow.served, flow.source, flow.ns, taken ? 1 : 0});
  }
  return {{"groups", std::move(groups)},
          {"rows", std::move(rows)},
          {"kernel", ledger.kernel_ns},
          {"idle", ledger.idle_ns},
          {"steal", ledger.steal_ns},
          {"other", ledger.other_ns},
          {"unclaimed", std::move(unclaimed)},
          {"kernel_seems", ledger.kernel_seems_ns},
          {"idle_seems", ledger.idle_seems_ns},
          {"steal_seems", ledger.steal_seems_ns},
          {"other_seems", ledger.other_seems_ns},
          {"unsampled", ledger.unsampled_ns},
          {"sum", ledger.sum_ns()},
          {"flows", std::move(flows)}};
}

Json client_to_json(const Profile& profile, const ClientRow& row) {
  Json to = {{"user", row.user_ns}, {"own", row.own_ns}, {"async", row.async_ns}};
  if (row.client == 0) return to;
  const Client& client = profile.clients()[row.client];
  to["client"] = client.label;
  to["via"] = client.via;
  if (row.requests) to["requests"] = row.requests;
  Json& rules = to["rules"] = Json::object();
  for (int i = 1; i < client_rule_count; ++i)
    if (row.rules[i]) rules[std::string(to_string(static_cast<ClientRule>(i)))] = row.rules[i];
  return to;
}

Json servers_to_json(const Profile& profile) {
  Json servers = Json::array();
  for (const Server& server : servers_of(profile)) {
    Json clients = Json::array();
    for (const ClientRow& row : server.clients) clients.push_back(client_to_json(profile, row));
    servers.push_back({{"label", server.label}, {"clients", std::move(clients)}});
  }
  return servers;
}

Json ledgers_to_json(const Profile& profile, bool clients) {
  Json ledgers = tables_to_json(profile, [&](By by) { return ledger_to_json(profile, by); });
  if (!clients) return ledgers;
  // Its labels have the numbers that they have in `profile`; its sources have others.
  const Profile charged = charged_to_clients(profile);
  Json& by_client = ledgers[std::string(to_string(By::client))] = ledger_to_json(charged, By::pid);
  by_client["sources"] = sources_to_json(charged);
  return ledgers;
}

// Of several resources, the one that the ledger is of: CPU time, if it has any.
std::optional<Profile> shown_alone(const Profile& profile) {
  const auto& samples = profile.samples();
  if (samples.empty()) return {};
  const Resource shown = resource_of(profile);
  const bool alone = std::ranges::all_of(
      samples, [shown](const Profile::Sample& sample) { return sample.key.resource == shown; });
  return alone ? std::nullopt : std::optional(of_resource(profile, shown));
}

}  // namespace

Json page_data(const Profile& whole, const std::string& name, PageRole role) {
  // Labels and functions have the same numbers in both.
  const std::optional<Profile> part = shown_alone(whole);
  const Profile& profile = part ? *part : whole;
  Json to = json_header(profile, "pkprof.page/1", By::pid);
  for (Json& sentence : to["degraded"]) sentence = clean(sentence.get<std::string>());
  to["file"] = clean(name);
  to["command"] = clean(profile.meta.command);
  to["start_unix_ns"] = profile.meta.start_unix_ns;
  to["labels"] = labels_to_json(profile);
  to["sources"] = sources_to_json(profile);
  const PageStacks stacks = page_stacks(profile);
  to["stacks"] = stacks_to_json(stacks);
  to["counted"] = std::move(to["samples"]);
  to["samples"] = samples_to_json(stacks);
  const bool clients = has_clients(profile);
  if (clients) to["samples"]["by_client"] = charges_to_json(stacks);
  to["timeline"] = timeline_to_json(profile);
  if (role == PageRole::before) return to;
  to["ledgers"] = ledgers_to_json(profile, clients);
  if (clients) to["servers"] = servers_to_json(profile);
  if (role == PageRole::after) return to;
  to["resource"] = to_string(resource_of(whole));
  if (has_resource(whole, Resource::wait)) to["waits"] = waits_to_json(whole);
  if (!used_resources(whole).empty()) to["resources"] = resources_to_json(whole);
  return to;
}

}  // namespace pkprof
