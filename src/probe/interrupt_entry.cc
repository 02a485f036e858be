// SPDX-License-Identifier: Apache-2.0
#include "probe/interrupt_entry.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace pkprof {
namespace {

constexpr uint64_t longest_ns = 60'000'000;
constexpr size_t many_gaps = 60;
// More is not an interrupt: an emulator runs the other CPU in between.
constexpr uint64_t longest_entering_ns = 25'000;
constexpr int tries = 3;                   // where other processes have the CPUs
constexpr uint64_t apart_ns = 20'000;      // from one interrupt to the next
constexpr uint64_t gap_ns = 200;           // in which it was not us who had the CPU
constexpr size_t enough_gaps = 10;         // to say how long one is
constexpr uint64_t not_entering_ns = 150;  // of it: its handler, which does next to nothing, and us

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set)) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

bool stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

bool barrier(int what) {
  return syscall(SYS_membarrier, what, 0, 0) == 0;
}

// Looks at the clock all the time: what went by between two looks, if it was long, and if somebody
// was interrupting then. The host has its own reasons to take a CPU away.
void find_gaps(int cpu, const std::atomic<bool>& interrupting, std::vector<uint64_t>& gaps) {
  if (!stay_on(cpu)) return;
  const uint64_t end = monotonic_ns() + longest_ns;
  for (uint64_t last = monotonic_ns(); last < end && gaps.size() < many_gaps;) {
    const uint64_t now = monotonic_ns();
    if (now - last > gap_ns && interrupting.load(std::memory_order_relaxed))
      gaps.push_back(now - last);
    last = now;
  }
}

// None where threads cannot be had.
std::vector<uint64_t> gaps_between(const std::vector<int>& cpus) {
  std::atomic<bool> interrupting = false;
  std::vector<uint64_t> gaps;
  gaps.reserve(many_gaps);
  try {
    const std::jthread one([&](const std::stop_token& end) {
      if (!stay_on(cpus[0])) return;
      while (!end.stop_requested()) {
        interrupting = true;
        if (!barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
        interrupting = false;
        const uint64_t next = monotonic_ns() + apart_ns;
        while (!end.stop_requested() && monotonic_ns() < next) continue;
      }
    });
    std::jthread([&] { find_gaps(cpus[1], interrupting, gaps); }).join();
  } catch (const std::system_error&) {
    gaps.clear();
  }
  return gaps;
}

}  // namespace

uint64_t measure_interrupt_entry_ns() {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2 || !barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return 0;
  std::vector<uint64_t> gaps;
  for (int i = 0; i < tries && gaps.size() < enough_gaps; ++i) gaps = gaps_between(cpus);
  if (gaps.size() < enough_gaps) return 0;
  // Other interrupts come, too, some with much to do behind them, and other processes: these gaps
  // are longer. A few are shorter.
  const auto typical = gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 4);
  std::nth_element(gaps.begin(), typical, gaps.end());
  if (*typical > longest_entering_ns) return 0;
  return *typical - std::min(*typical, not_entering_ns);
}

}  // namespace pkprof
