// SPDX-License-Identifier: Apache-2.0
#include "report/usage/usage_json.h"

#include "report/json_header.h"
#include "report/usage/usage.h"
#include "report/usage/usage_text.h"

namespace pkprof {
namespace {

Json used_json(const Used& used, Resource resource) {
  Json json{{is_in_bytes(resource) ? "bytes" : "ns", used.amount}, {"count", used.count}};
  if (resource == Resource::disk) json["time_ns"] = used.time_ns;
  return json;
}

Json user_json(const User& user, Resource resource) {
  Json json = used_json(user.all, resource);
  for (const auto& [way, used] : user.ways) json["ways"][way] = used_json(used, resource);
  for (const auto& [device, ways] : user.devices)
    for (const auto& [way, used] : ways) json["devices"][device][way] = used_json(used, resource);
  return json;
}

}  // namespace

Json resources_object(const Profile& profile, const ReportOptions& options) {
  Json resources = Json::object();
  for (const Resource resource : used_resources(profile)) {
    const Usage usage = usage_of(profile, resource, options.by, options.pids);
    const auto name = [&](GroupId id) {
      return party_json(profile, options.by, usage.groups.all()[id]);
    };
    Json& of = resources[std::string(to_string(resource))];
    of["rows"] = Json::array();
    for (const User& user : usage.rows) {
      Json row = user_json(user, resource);
      row["who"] = name(user.who);
      const bool is_net = resource == Resource::net;
      for (const auto& [other, amount] : user.others)
        row[is_net ? "peers" : "holders"].push_back(
            {{"who", name(other)}, {is_net ? "bytes" : "ns", amount}});
      of["rows"].push_back(row);
    }
    of["total"] = user_json(usage.total, resource);
    if (resource != Resource::lock) continue;
    of["locks"] = Json::array();
    for (const UsedLock& lock : usage.locks) {
      Json json{{"name", lock.name}, {"way", lock.way}};
      json.update(used_json(lock.all, resource));
      for (const auto& [key, parties] :
           {std::pair("waiters", &lock.waiters), std::pair("holders", &lock.holders)})
        for (const auto& [who, ns] : *parties)
          json[key].push_back({{"who", name(who)}, {"ns", ns}});
      of["locks"].push_back(json);
    }
  }
  return resources;
}

std::string usage_json(const Profile& profile, const ReportOptions& options) {
  Json report = json_header(profile, "pkprof.usage/1", options.by);
  report["resources"] = resources_object(profile, options);
  return json_line(report);
}

}  // namespace pkprof
