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

using Locks = std::map<std::pair<std::string_view, std::string>, UsedLock>;

// The innermost frame.
std::string_view lock_of(const Profile& profile, const SampleKey& key) {
  const std::span<const FrameId> stack = profile.frames_of(key.stack);
  if (stack.empty()) return "";
  const Frame& frame = profile.frames()[stack.front()];
  const std::string_view name = profile.text(frame.function);
  const bool is_source = name == "wait:lock" || name == profile.text(key.source);
  return frame.kind == FrameKind::pseudo && !is_source ? name : "";
}

std::vector<UsedLock> longest_first(Locks found) {
  std::vector<UsedLock> locks;
  for (auto& [name_and_way, lock] : found) {
    std::tie(lock.name, lock.way) = name_and_way;
    locks.push_back(std::move(lock));
  }
  std::ranges::stable_sort(locks, std::greater(),
                           [](const UsedLock& lock) { return lock.all.amount; });
  return locks;
}

}  // namespace

Usage usage_of(const Profile& profile, Resource resource, By by, std::span<const uint32_t> pids) {
  Usage usage{.groups = Groups(profile, by, pids), .resource = resource};
  std::map<GroupId, User> all;
  Locks locks;
  for (const auto& [key, value] : profile.samples()) {
    if (key.resource != resource) continue;
    const Label& label = profile.labels()[key.served];
    if (!pids.empty() && !is_selected(label, pids)) continue;
    const GroupId who = usage.groups.by_reason(key.served, key.served_thread);
    User& user = all[who];
    const std::string way(way_of(profile.text(key.source)));
    const std::string device = device_of(profile, key);
    add(user, way, device, value);
    add(usage.total, way, device, value);
    if (resource != Resource::lock && resource != Resource::net) continue;
    const GroupId other = usage.groups.of(key.ran_on, key.thread, true);
    user.others[other] += value.ns;
    if (resource != Resource::lock) continue;
    if (const std::string_view name = lock_of(profile, key); !name.empty()) {
      UsedLock& lock = locks[{name, way}];
      add(lock.all, value);
      lock.waiters[who] += value.ns;
      lock.holders[other] += value.ns;
    }
  }
  usage.locks = longest_first(std::move(locks));
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
