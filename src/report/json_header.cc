// SPDX-License-Identifier: Apache-2.0
#include "report/json_header.h"

#include "report/degraded.h"

namespace pkprof {
namespace {

// A process by its pid, a client on another machine by its address.
Json party_of(const Label& label) {
  if (label.kind == LabelKind::process) return label.pid;
  return label.name();
}

}  // namespace

Json party_json(const Profile& profile, By by, const Group& group) {
  if (group.kind == GroupKind::special)
    return group.label == left_out ? "OTHER" : profile.labels()[group.label].name();
  const Label& label = profile.labels()[group.label];
  if (by == By::pid && label.kind == LabelKind::process)
    return {{"pid", label.pid}, {"comm", label.host_prefix() + label.comm}};
  return group_title(profile, by, group);
}

Json for_clients(const Profile& profile, const Server& server) {
  Json clients = Json::array();
  for (const ClientRow& row : server.clients) {
    if (row.client == 0) continue;
    const Client& client = profile.clients()[row.client];
    Json to = {{"client", party_of(profile.labels()[client.label])},
               {"comm", profile.labels()[client.label].comm},
               {"user_ns", row.user_ns},
               {"own_ns", row.own_ns},
               {"async_ns", row.async_ns}};
    Json& via = to["via"] = Json::array();
    for (const LabelId id : client.via) via.push_back(party_of(profile.labels()[id]));
    Json& rules = to["rules"] = Json::object();
    for (int i = 1; i < client_rule_count; ++i)
      if (row.rules[i]) rules[std::string(to_string(static_cast<ClientRule>(i)))] = row.rules[i];
    if (row.requests) to["requests"] = row.requests;
    clients.push_back(std::move(to));
  }
  return clients;
}

Json json_header(const Profile& profile, std::string_view schema, By by) {
  const Meta& meta = profile.meta;
  const uint64_t cost_ns = meta.cost_kernel_ns + meta.cost_user_ns;
  const double fraction =
      profile.cpu_ns() == 0 ? 0
                            : static_cast<double>(cost_ns) / static_cast<double>(profile.cpu_ns());
  return {{"schema", schema},
          {"kernel", meta.kernel},
          {"cpus", meta.cpus},
          {"duration_ns", meta.duration_ns},
          {"paused_ns", meta.paused_ns},
          {"frequency_hz", meta.frequency_hz},
          {"cpu_ns", profile.cpu_ns()},
          {"samples", {{"taken", meta.samples_taken}, {"lost", meta.samples_lost}}},
          {"watched", watched_share(meta)},
          {"cost",
           {{"kernel_ns", meta.cost_kernel_ns},
            {"user_ns", meta.cost_user_ns},
            {"fraction", fraction}}},
          {"user_stacks", meta.user_stacks},
          {"degraded", degraded_sentences(profile, by)}};
}

std::string json_line(const Json& object) {
  constexpr bool ensure_ascii = true;
  return object.dump(-1, ' ', ensure_ascii, Json::error_handler_t::replace) + "\n";
}

}  // namespace pkprof
