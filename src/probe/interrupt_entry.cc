// SPDX-License-Identifier: Apache-2.0
#include "probe/interrupt_entry.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <numeric>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace pkprof {
namespace {

// A host's CPUs change their speed within milliseconds: one burst of interrupts sees one of them.
constexpr int bursts = 4;
constexpr std::chrono::milliseconds between_bursts(5);
constexpr size_t gaps_of_burst = 15;
constexpr uint64_t longest_ns = 40'000'000;  // of a burst, where other processes have the CPUs
// More is not an interrupt: an emulator runs the other CPU in between.
constexpr uint64_t longest_entering_ns = 25'000;
constexpr uint64_t apart_ns = 20'000;      // from one interrupt to the next
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

// One that interrupts another: how many times, and how many of these are over.
struct Interrupts {
  std::atomic<uint64_t> begun = 0;
  std::atomic<uint64_t> over = 0;
};

// Looks at the clock all the time: the most that went by between two looks while an interrupt was
// not over. Shorter gaps are of the host, which has its own reasons to take a CPU away.
void find_gaps(int cpu, const Interrupts& interrupts, std::vector<uint64_t>& gaps) {
  if (!stay_on(cpu)) return;
  const uint64_t end = monotonic_ns() + longest_ns;
  uint64_t number = 0;
  uint64_t over = 0;
  uint64_t gap = 0;
  for (uint64_t last = monotonic_ns(); last < end && gaps.size() < gaps_of_burst;) {
    const uint64_t over_before = interrupts.over.load(std::memory_order_acquire);
    const uint64_t now = monotonic_ns();
    const uint64_t latest = interrupts.begun.load(std::memory_order_relaxed);
    if (latest != number) {
      if (gap) gaps.push_back(gap);
      number = latest;
      gap = 0;
    }
    if (over < number) gap = std::max(gap, now - last);
    over = over_before;
    last = now;
  }
}

// None where threads cannot be had.
std::vector<uint64_t> gaps_between(const std::vector<int>& cpus) {
  Interrupts interrupts;
  std::vector<uint64_t> gaps;
  gaps.reserve(gaps_of_burst);
  try {
    const std::jthread one([&](const std::stop_token& end) {
      if (!stay_on(cpus[0])) return;
      while (!end.stop_requested()) {
        ++interrupts.begun;
        if (!barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
        ++interrupts.over;
        const uint64_t next = monotonic_ns() + apart_ns;
        while (!end.stop_requested() && monotonic_ns() < next) continue;
      }
    });
    std::jthread([&] { find_gaps(cpus[1], interrupts, gaps); }).join();
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
  for (int i = 0; i < bursts; ++i) {
    if (i > 0) std::this_thread::sleep_for(between_bursts);
    std::ranges::copy(gaps_between(cpus), std::back_inserter(gaps));
  }
  std::erase_if(gaps, [](uint64_t gap) { return gap > longest_entering_ns; });
  if (gaps.size() < enough_gaps) return 0;
  // Other interrupts come, too, some with much to do behind them: these gaps are longer. The mean
  // is of the middle half.
  std::ranges::sort(gaps);
  const auto middle = std::span(gaps).subspan(gaps.size() / 4, gaps.size() / 2);
  const uint64_t mean = std::accumulate(middle.begin(), middle.end(), uint64_t{0}) / middle.size();
  return mean - std::min(mean, not_entering_ns);
}

}  // namespace pkprof
