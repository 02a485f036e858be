// SPDX-License-Identifier: Apache-2.0
#include "attribution/sources.h"

#include <seccomp.h>

#include <algorithm>
#include <cstdlib>

#include "pkprof/user_abi.h"

namespace pkprof {

std::string syscall_name(uint16_t number, bool compat) {
  char* name = seccomp_syscall_resolve_num_arch(compat ? SCMP_ARCH_X86 : SCMP_ARCH_NATIVE, number);
  if (!name) return "#" + std::to_string(number);
  std::string out = name;
  std::free(name);
  return out;
}

std::optional<uint16_t> syscall_number(const std::string& name, bool compat) {
  const int number =
      seccomp_syscall_resolve_name_arch(compat ? SCMP_ARCH_X86 : SCMP_ARCH_NATIVE, name.c_str());
  // Of calls that the table lacks there are numbers below zero.
  if (number < 0) return {};
  return static_cast<uint16_t>(number);
}

std::string_view softirq_name(uint8_t vec) {
  static constexpr std::string_view names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                               "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
  return vec < std::size(names) ? names[vec] : "entry";
}

std::string_view reason_name(uint8_t reason) {
  static constexpr std::string_view names[] = {"expired",   "dropped", "forwarded",
                                               "arp",       "icmp",    "protocol",
                                               "untracked", "lost",    "unwatched"};
  static_assert(std::size(names) == PK_REASONS);
  return reason < std::size(names) ? names[reason] : "unknown";
}

std::string kthread_name(std::string_view comm) {
  return std::string(comm.substr(0, comm.find_first_of("/:.")));
}

bool kthread_of_kernel(std::string_view name) {
  static constexpr std::string_view of_kernel[] = {
      "ksoftirqd", "rcu_preempt", "rcu_sched", "rcu_gp",      "rcu_par_gp",
      "rcuc",      "rcuog",       "rcuop",     "rcuos",       "rcu_tasks_kthread",
      "migration", "cpuhp",       "kthreadd",  "idle_inject", "watchdog",
      "watchdogd", "khungtaskd",  "kdamond",   "kworker",
  };
  return std::find(std::begin(of_kernel), std::end(of_kernel), name) != std::end(of_kernel) ||
         name.starts_with("rcu_") || name.starts_with("kcompactd");
}

bool work_of_kernel(std::string_view function) {
  static constexpr std::string_view of_kernel[] = {
      "vmstat_update",
      "vmstat_shepherd",
      "gc_worker",
      "neigh_periodic_work",
      "neigh_managed_work",
      "psi_avgs_work",
      "cache_reap",
      "process_srcu",
      "wait_rcu_exp_gp",
      "rcu_sr_normal_gp_cleanup_work",
      "toggle_allocation_gate",
      "kfree_rcu_monitor",
      "clocksource_watchdog_work",
      "flush_memcg_stats_dwork",
      "sync_rcu_exp_select_node_cpus",
      "rht_deferred_worker",
      "addrconf_verify_work",
      "disk_events_workfn",
      "mce_work_trigger",
      "update_balloon_stats_func",
      "wq_barrier_func",
  };
  return std::find(std::begin(of_kernel), std::end(of_kernel), function) != std::end(of_kernel);
}

}  // namespace pkprof
