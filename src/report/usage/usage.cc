// SPDX-License-Identifier: Apache-2.0
#include "report/usage/usage.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/merge.h"

namespace pkprof {
namespace {

// Of a source, "disk:read": "read".
std::string_view way_of(std::string_view source) {
  return source.substr(std::min(source.size(), source.find(':') + 1));
}

void add(Used& to, const SampleValue& value) {
  to.amount += value.ns;
  to.count += value.count;
  to.time_ns += value.exact_ns;
}

void add(User& to, const std::string& way, const std::string& device, const SampleValue& value) {
  // The time in a queue is no time of the disk.
  if (way != "queued") add(to.all, value);
  add(to.ways[way], value);
  if (!device.empty()) add(to.devices[device][way], value);
}

// The frame above its source.
std::string device_of(const Profile& profile, const SampleKey& key) {
  const std::span<const FrameId> stack = profile.frames_of(key.stack);
  const bool has_device = key.resource == Resource::disk || key.resource == Resource::net;
  return has_device && !stack.empty()
             ? std::string(profile.text(profile.frames()[stack.front()].function))
             : "";
}

}  // namespace

Usage usage_of(const Profile& profile, Resource resource, By by, std::span<const uint32_t> pids) {
  Usage usage{.groups = Groups(profile, by, pids), .resource = resource};
  std::map<GroupId, User> all;
  for (const auto& [key, value] : profile.samples()) {
    if (key.resource != resource) continue;
    const Label& label = profile.labels()[key.served];
    if (!pids.empty() && !is_selected(label, pids)) continue;
    User& user = all[usage.groups.by_reason(key.served, key.served_thread)];
    const std::string way(way_of(profile.text(key.source)));
    const std::string device = device_of(profile, key);
    add(user, way, device, value);
    add(usage.total, way, device, value);
    if (resource == Resource::lock || resource == Resource::net)
      user.others[usage.groups.of(key.ran_on, key.thread, true)] += value.ns;
  }
  for (auto& [who, user] : all) {
    user.who = who;
    usage.rows.push_back(std::move(user));
  }
  std::ranges::stable_sort(usage.rows, std::greater(), [&](const User& row) {
    const bool is_special = usage.groups.all()[row.who].kind == GroupKind::special;
    return std::tuple(!is_special, row.all.amount, row.all.time_ns);
  });
  return usage;
}

std::vector<Resource> used_resources(const Profile& profile) {
  std::vector<Resource> used;
  for (const Resource one : every_resource)
    if (one != Resource::cpu && one != Resource::wait && has_resource(profile, one))
      used.push_back(one);
  return used;
}

}  // namespace pkprof
