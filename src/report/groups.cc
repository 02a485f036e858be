// SPDX-License-Identifier: Apache-2.0
#include "report/groups.h"

#include <algorithm>

#include "model/hash.h"

namespace pkprof {

namespace {

constexpr GroupId no_group = UINT32_MAX;

constexpr std::array<std::string_view, every_by.size()> by_names = {
    "pid", "thread", "comm", "exe", "cgroup", "container", "unit", "host", "client"};

constexpr std::array<std::string_view, 7> kind_names = {
    "special", "member", "any thread", "kernel threads", "none", "unknown", "other machines"};

// Of a kernel thread, what is before its number: ksoftirqd/0 and ksoftirqd/1 are one.
std::string family_of(std::string_view comm) {
  return "[" + std::string(comm.substr(0, comm.find_first_of("/:"))) + "]";
}

struct Place {
  GroupKind kind = GroupKind::member;
  std::string name;
};

Place place(std::string name, GroupKind otherwise) {
  if (name.empty()) return {otherwise, ""};
  return {GroupKind::member, std::move(name)};
}

Place place_of(const Profile& profile, const Label& label, By by) {
  if (by == By::host && label.kind == LabelKind::process)
    return place(label.host.empty() ? profile.meta.host : label.host, GroupKind::unknown);
  if (by == By::comm) {
    if (label.kthread) return {GroupKind::member, family_of(label.comm)};
    return place(label.comm, GroupKind::unknown);
  }
  if (label.kthread) return {GroupKind::kernel_threads, ""};
  if (label.kind == LabelKind::remote) return {GroupKind::other_machines, ""};
  if (by == By::exe) return place(label.exe, GroupKind::unknown);
  const Container container = container_of(label);
  if (by == By::container && !container.id.empty())
    return {GroupKind::member, container_title(container)};
  if (label.cgroup.empty()) return {GroupKind::unknown, ""};
  if (by == By::container) return {GroupKind::none, ""};
  if (by == By::unit) return place(unit_of_cgroup(label.cgroup, container), GroupKind::none);
  return {GroupKind::member, label.cgroup};
}

// What makes two processes' groups one: not the title alone, which two containers may share.
std::string key_of(const Label& label, By by, const Place& place) {
  if (by != By::container || place.kind != GroupKind::member) return place.name;
  const Container container = container_of(label);
  const bool by_name = container.runtime == "lxc" || container.runtime == "machine";
  return by_name ? container.runtime + "/" + container.id : container.id;
}

}  // namespace

std::string_view to_string(By by) {
  const auto i = static_cast<size_t>(by);
  return i < by_names.size() ? by_names[i] : "?";
}

std::optional<By> by_from_string(std::string_view name) {
  const auto it = std::ranges::find(by_names, name);
  if (it == by_names.end()) return std::nullopt;
  return static_cast<By>(it - by_names.begin());
}

std::string_view to_string(GroupKind kind) {
  const auto i = static_cast<size_t>(kind);
  return i < kind_names.size() ? kind_names[i] : "?";
}

Groups::Groups(const Profile& profile, By by, std::span<const uint32_t> pids)
    : profile_(profile), by_(by), pids_(pids), left_out_(no_group) {
  specials_.fill(no_group);
  of_label_.assign(profile.labels().size(), no_group);
}

GroupId Groups::add(LabelId label, uint32_t thread, GroupKind kind, std::string name) {
  Group group{.kind = kind, .label = label, .thread = thread, .name = std::move(name)};
  if (kind != GroupKind::special) group.processes.push_back(label);
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

GroupId Groups::special(LabelKind kind, LabelId label) {
  GroupId& id = label == left_out ? left_out_ : specials_[static_cast<size_t>(kind)];
  if (id == no_group) id = add(label, 0, GroupKind::special, "");
  return id;
}

GroupId Groups::of(LabelId id, uint32_t thread, bool keep) {
  const Label& label = profile_.labels()[id];
  if (label.kind != LabelKind::process && label.kind != LabelKind::remote)
    return special(label.kind, id);
  if (!is_selected(label, pids_) && !(keep && by_ == By::pid))
    return special(LabelKind::other, left_out);
  if (by_ == By::thread) return group_of_process(id, thread);
  if (of_label_[id] == no_group) of_label_[id] = group_of_process(id, thread);
  return of_label_[id];
}

GroupId Groups::by_reason(LabelId id, uint32_t thread) {
  if (profile_.labels()[id].kind != LabelKind::unclaimed) return of(id, thread);
  if (of_label_[id] == no_group) of_label_[id] = add(id, 0, GroupKind::special, "");
  return of_label_[id];
}

GroupId Groups::group_of_process(LabelId id, uint32_t thread) {
  const Label& label = profile_.labels()[id];
  if (by_ == By::pid) return add(id, 0, GroupKind::member, "");
  if (by_ == By::thread) {
    const uint64_t hash = hash_words(hash_seed(), {id, thread});
    const uint32_t found = by_thread_.find(
        hash, [&](uint32_t i) { return groups_[i].label == id && groups_[i].thread == thread; });
    if (found != IndexTable::none) return found;
    const auto name = profile_.thread_names().find({id, thread});
    const GroupId group = add(id, thread, thread ? GroupKind::member : GroupKind::any_thread,
                              name == profile_.thread_names().end() ? "" : name->second);
    by_thread_.insert(hash, group);
    return group;
  }
  Place where = place_of(profile_, label, by_);
  const std::string key = key_of(label, by_, where);
  const uint64_t hash =
      hash_words(hash_seed(), {static_cast<uint64_t>(where.kind), hash_bytes(hash_seed(), key)});
  const uint32_t found = by_name_.find(hash, [&](uint32_t i) {
    const Label& first = profile_.labels()[groups_[i].label];
    return groups_[i].kind == where.kind &&
           key_of(first, by_, {where.kind, groups_[i].name}) == key;
  });
  if (found != IndexTable::none) {
    groups_[found].processes.push_back(id);
    return found;
  }
  const GroupId group = add(id, 0, where.kind, std::move(where.name));
  by_name_.insert(hash, group);
  return group;
}

std::string group_title(const Profile& profile, By by, const Group& group) {
  if (group.label == left_out) return "OTHER";
  const Label& label = profile.labels()[group.label];
  switch (group.kind) {
    case GroupKind::special:
      return label.kind == LabelKind::unclaimed ? "UNCLAIMED" : label.name();
    case GroupKind::kernel_threads:
      return "(kernel threads)";
    case GroupKind::none:
      return "(no " + std::string(to_string(by)) + ")";
    case GroupKind::unknown:
      return "(" + std::string(to_string(by)) + " not known)";
    case GroupKind::other_machines:
      return "(other machines)";
    case GroupKind::any_thread:
    case GroupKind::member:
      break;
  }
  if (by != By::pid && by != By::thread) return group.name;
  if (label.kind == LabelKind::remote) return label.name();
  return label.host_prefix() + (group.name.empty() ? label.comm : group.name) + "[" +
         id_text(profile, by, group) + "]";
}

std::string id_text(const Profile& profile, By by, const Group& group) {
  const Label& label = profile.labels()[group.label];
  std::string text = label.pid_text();
  if (by == By::thread && label.kind != LabelKind::remote)
    text += "/" + (group.thread ? number_text(group.thread) : "-");
  return text;
}

bool is_selected(const Label& label, std::span<const uint32_t> pids) {
  if (pids.empty()) return label.kind == LabelKind::process || label.kind == LabelKind::remote;
  return label.kind == LabelKind::process && std::ranges::find(pids, label.pid) != pids.end();
}

bool has_hosts(const Profile& profile) {
  return std::ranges::any_of(profile.labels(),
                             [](const Label& label) { return !label.host.empty(); });
}

bool has_threads(const Profile& profile) {
  return std::ranges::any_of(profile.samples(), [](const Profile::Sample& sample) {
    return sample.key.thread != 0 || sample.key.served_thread != 0;
  });
}

}  // namespace pkprof
