// SPDX-License-Identifier: Apache-2.0
// The ledger: CPU time by (ran-on, served, source), and what it comes to for each process: what it
// seems to cost (it was on the CPU), what it costs (it was served), what was taken from it (it was
// on the CPU and another was served). The sum is CPUs x time, always: what no sample stands for is
// unclaimed, with the reason "unsampled".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// One process (or kernel thread), one thread, or one group of processes. All in nanoseconds of CPU
// time.
struct LedgerRow {
  LabelId label = 0;  // the process, or the group's first
  GroupId group = 0;
  uint64_t user_ns = 0;    // served, in its own user code
  uint64_t own_ns = 0;     // served, in the kernel, in its own context
  uint64_t async_ns = 0;   // served by asynchronous work or while another was on the CPU
  uint64_t stolen_ns = 0;  // on the CPU, but another was served: another group, not a fellow
  uint64_t within_ns = 0;  // a member was on the CPU and a fellow was served; is in its async_ns
  uint64_t seems_ns = 0;   // on the CPU, whoever was served: what top(1) would show
  uint64_t for_others_ns = 0;  // part of its costs: for clients of another group, as a server
  uint64_t by_servers_ns = 0;  // part of other groups' costs: for this one, as their client
  std::map<std::string, uint64_t> sources;       // served, by source
  std::array<uint64_t, basis_count> basis = {};  // served, by basis

  [[nodiscard]] uint64_t costs_ns() const { return user_ns + own_ns + async_ns; }
  // What it costs when servers' time is their clients'.
  [[nodiscard]] uint64_t with_servers_ns() const {
    return costs_ns() - for_others_ns + by_servers_ns;
  }
};

// Between groups. Labels of one kind other than process count as one here.
struct Flow {
  GroupId ran_on = 0;
  GroupId served = 0;
  StringId source = 0;
  uint64_t ns = 0;
};

// A kernel thread at its own work ("kthread:..."): whoever that was for, nothing was taken from it.
[[nodiscard]] bool is_own_work(const Profile& profile, LabelId ran_on, StringId source);

// What a sample's time is to the process that was served: `user` and `own` if it was on the CPU
// itself, else `async`. Threads are told apart where the key has them.
enum class Part : uint8_t { user, own, async };
[[nodiscard]] Part part_of(const Profile& profile, const SampleKey& key);
// Whether it was taken from whoever was on the CPU: another was served, and it was not at its own
// work.
[[nodiscard]] bool is_taken(const Profile& profile, const SampleKey& key);

struct Ledger {
  By by = By::pid;
  std::vector<Group> groups;         // of rows and flows, by number
  std::vector<LedgerRow> processes;  // by costs + stolen, largest first
  std::vector<Flow> flows;           // largest first; their sum is what was sampled
  uint64_t kernel_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t steal_ns = 0;  // taken by the host
  uint64_t other_ns = 0;
  std::map<std::string, uint64_t> unclaimed;  // by reason
  // On the CPU, for those that are not rows.
  uint64_t kernel_seems_ns = 0;
  uint64_t idle_seems_ns = 0;
  uint64_t steal_seems_ns = 0;
  uint64_t other_seems_ns = 0;
  // What processes that are not rows did for clients that are, and the other way around.
  uint64_t other_for_others_ns = 0;
  uint64_t other_by_servers_ns = 0;
  bool has_clients = false;   // a server worked for a client, of whatever group
  uint64_t unsampled_ns = 0;  // also in `unclaimed`
  uint64_t sampled_ns = 0;    // what the samples stand for
  uint64_t cpu_ns = 0;        // CPUs x duration

  [[nodiscard]] uint64_t unclaimed_ns() const;
  [[nodiscard]] uint64_t other_with_servers_ns() const {
    return other_ns - other_for_others_ns + other_by_servers_ns;
  }
  // user + own + async of all + kernel + idle + steal + other + unclaimed, added up. It is cpu_ns,
  // unless the samples stand for more than that, as they may by rounding; then it is sampled_ns.
  [[nodiscard]] uint64_t sum_ns() const;
  // The same with what all cost with their servers. It is sum_ns(): what a server did for a client
  // is in the client's row, and no longer in the server's.
  [[nodiscard]] uint64_t sum_with_servers_ns() const;
};

// With `pids`, only these processes are rows (or members of rows), and the rest is in `other_ns`;
// flows between processes left out are flows from `left_out` to `left_out`.
//
// A group's user, own and async time are sums over its members: what was done for a member was
// done for the group, whoever was on the CPU. Stolen is not: what one member's CPU did for another
// was not taken from the group, it is `within_ns`. So the stolen times of the members add up to the
// group's stolen and within. By::thread, work for a process of which it is not known for which of
// its threads it was is a row of its own, and counts as neither: it may have been for itself.
//
// A client that took no time itself has a row, too, for what servers did for it; so has an address
// on another machine. Of a client's threads it is not known which one asked.
[[nodiscard]] Ledger build_ledger(const Profile& profile, std::span<const uint32_t> pids = {},
                                  By by = By::pid);

// Whether a flow's time was taken from whoever was on the CPU. Of a group's members, by one
// another, nothing was.
[[nodiscard]] bool is_taken(const Profile& profile, const Ledger& ledger, const Flow& flow);

// Whether a sample was served to a selected process, or to anyone when none is selected.
[[nodiscard]] bool is_served_to(const Profile& profile, const SampleKey& key,
                                std::span<const uint32_t> pids);

}  // namespace pkprof
