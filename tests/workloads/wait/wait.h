// SPDX-License-Identifier: Apache-2.0
// A scenario of waiting: a process waits for something of a known kind, for a known process, and
// measures by its own clock and by the kernel's count how long.
//
// The bystander runs the same scenario in processes of its own, at the same time, and sleeps where
// the first one burns CPU. So it waits and wakes as often, and never for the first one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pkprof::wait {

inline constexpr uint64_t ms = 1'000'000;
inline constexpr uint64_t lasts = 2000 * ms;

// What a scenario says of itself.
struct Said {
  std::vector<pid_t> others;  // whom it waited for
  uint64_t waited_ns = 0;     // all of its threads together
  uint64_t took_ns = 0;
};
using Arguments = std::vector<std::string>;

[[nodiscard]] uint64_t now_ns();
void sleep_ns(uint64_t ns);
void stay_on(size_t cpu);

// Burns CPU; in the bystander, sleeps.
void work(uint64_t ns);
void burn(uint64_t ns);  // everywhere
[[nodiscard]] bool is_bystander();
void become_bystander();

// A child that ends with its parent, and with `body`.
[[nodiscard]] pid_t in_child(const std::function<void()>& body);
[[noreturn]] void give_up(const char* what);  // says why, by errno

// CPU time, and time ready without a CPU, of the calling thread, as the kernel counts both.
[[nodiscard]] uint64_t own_cpu_ns();
[[nodiscard]] uint64_t run_delay_ns();
[[nodiscard]] uint64_t cpu_ns_of(pid_t process);

// How long the calling thread is off the CPU in it.
template <typename Call>
uint64_t off_cpu_time_of(Call call) {
  const uint64_t before = now_ns(), cpu_before = own_cpu_ns();
  call();
  const uint64_t cpu_ns = own_cpu_ns() - cpu_before;
  return now_ns() - before - cpu_ns;
}

// And not ready to run meanwhile: blocked. Whatever else runs on the machine makes no difference.
template <typename Call>
uint64_t blocked_time_of(Call call) {
  const uint64_t delay_before = run_delay_ns();
  const uint64_t off_cpu = off_cpu_time_of(call);
  const uint64_t delay = run_delay_ns() - delay_before;
  return off_cpu > delay ? off_cpu - delay : 0;
}

// The scenarios.
[[nodiscard]] Said sleep_scenario(const Arguments&);
[[nodiscard]] Said hogs_scenario(const Arguments&);
[[nodiscard]] Said children_scenario(const Arguments&);
[[nodiscard]] Said threads_scenario(const Arguments&);
[[nodiscard]] Said short_threads_scenario(const Arguments&);
[[nodiscard]] Said mutex_scenario(const Arguments&);
[[nodiscard]] Said rwlock_scenario(const Arguments&);
[[nodiscard]] Said inode_scenario(const Arguments&);
[[nodiscard]] Said condition_scenario(const Arguments&);
[[nodiscard]] Said eventfd_scenario(const Arguments&);
[[nodiscard]] Said pipe_scenario(const Arguments&);
[[nodiscard]] Said tcp_scenario(const Arguments&);
[[nodiscard]] Said udp_scenario(const Arguments&);
[[nodiscard]] Said disk_scenario(const Arguments&);
[[nodiscard]] Said fault_scenario(const Arguments&);
[[nodiscard]] Said memory_scenario(const Arguments&);

}  // namespace pkprof::wait
