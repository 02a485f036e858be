// SPDX-License-Identifier: Apache-2.0
// What the rows of a report are: processes, their threads, or groups of processes that have
// something in common. Every process is in exactly one group, so sums stay what they are; those
// that have no cgroup, container, unit or executable to go by are groups of their own, by why.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace pkprof {

// `client` is of reports alone, which see to it first: charge_as_asked().
enum class By : uint8_t { pid = 0, thread, comm, exe, cgroup, container, unit, host, client };
inline constexpr std::array every_by = {By::pid,       By::thread, By::comm, By::exe,   By::cgroup,
                                        By::container, By::unit,   By::host, By::client};
[[nodiscard]] std::string_view to_string(By by);
[[nodiscard]] std::optional<By> by_from_string(std::string_view name);

using GroupId = uint32_t;

enum class GroupKind : uint8_t {
  special = 0,     // KERNEL, IDLE, OTHER, UNCLAIMED, STEAL: never a row
  member,          // one process (By::pid), one thread (By::thread), or what `name` says
  any_thread,      // By::thread: time of a process of which it is not known for which thread it was
  kernel_threads,  // they have no executable, no container, and are of no unit
  none,            // known to be in no container, of no unit
  unknown,         // not known
  other_machines,  // clients by their addresses: as kernel threads, of none of these
};

[[nodiscard]] std::string_view to_string(GroupKind kind);

struct Group {
  GroupKind kind = GroupKind::special;
  LabelId label = 0;    // the process, or the first one; for `special`, what it is
  uint32_t thread = 0;  // By::thread
  std::string name;     // not cleaned; empty By::pid
  std::vector<LabelId> processes;
};

// A special group without a label: processes that a selection left out.
inline constexpr LabelId left_out = UINT32_MAX;

class Groups {
 public:
  // With `pids`, other processes are left out. `profile` must outlive this.
  Groups(const Profile& profile, By by, std::span<const uint32_t> pids);

  // The group of a label, and of the thread if that is what is asked for. Numbers are given in
  // order of appearance. By::pid, `keep` makes a group of a process that was left out.
  GroupId of(LabelId label, uint32_t thread, bool keep = false);

  // The same, but time that is UNCLAIMED for one reason is apart from that for another.
  GroupId by_reason(LabelId label, uint32_t thread);

  // All that were asked for, by number.
  [[nodiscard]] const std::vector<Group>& all() const { return groups_; }

 private:
  GroupId special(LabelKind kind, LabelId label);
  GroupId group_of_process(LabelId label, uint32_t thread);
  GroupId add(LabelId label, uint32_t thread, GroupKind kind, std::string name);

  const Profile& profile_;
  const By by_;
  const std::span<const uint32_t> pids_;
  std::vector<Group> groups_;
  std::array<GroupId, label_kind_count> specials_;
  GroupId left_out_;
  std::vector<GroupId> of_label_;  // none while not asked; not By::thread, but for by_reason()
  IndexTable by_name_;             // groups of several processes
  IndexTable by_thread_;
};

// For whoever reads: "nginx[812]", "nginx[812/815]", "nginx[812/-]", "/system.slice/x",
// "(no container)", "IDLE", "web1/nginx[812]" where there are several hosts. Not cleaned.
// The numbers of a process's or a thread's group: "1234", "1234/1235".
[[nodiscard]] std::string id_text(const Profile& profile, By by, const Group& group);
[[nodiscard]] std::string group_title(const Profile& profile, By by, const Group& group);

// Whether a label is to be shown as a row: one of the processes `pids` or, when there are none, any
// process, and a client on another machine.
[[nodiscard]] bool is_selected(const Label& label, std::span<const uint32_t> pids);

// Whether it is of several machines.
[[nodiscard]] bool has_hosts(const Profile& profile);

// Whether any sample says which thread ran.
[[nodiscard]] bool has_threads(const Profile& profile);

}  // namespace pkprof
