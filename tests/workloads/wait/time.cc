// SPDX-License-Identifier: Apache-2.0
// Waits for a time and for a CPU; threads that come and go.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "wait/wait.h"

namespace pkprof::wait {

// Lengths from a tenth of a millisecond up to thirty, in three threads.
Said sleep_scenario(const Arguments&) {
  std::atomic<uint64_t> waited = 0;
  {
    std::vector<std::jthread> threads;
    for (const uint64_t length : {ms / 10, ms, 30 * ms})
      threads.emplace_back([length, &waited] {
        waited += blocked_time_of([&] {
          for (const uint64_t end = now_ns() + lasts; now_ns() < end; work(length / 20))
            sleep_ns(length);
        });
      });
  }
  return {.others = {}, .waited_ns = waited};
}

// Two on one CPU, which others may use as well: "took_ns" is what the other one had of it. The
// bystander has the other CPU.
Said hogs_scenario(const Arguments&) {
  if (is_bystander()) {
    stay_on(1);
    burn(lasts);
    return {};
  }
  stay_on(0);
  const pid_t child = in_child([] { burn(lasts + 500 * ms); });
  sleep_ns(50 * ms);
  const uint64_t delay_before = run_delay_ns(), cpu_before = cpu_ns_of(child);
  burn(lasts);
  Said said{.others = {child},
            .waited_ns = run_delay_ns() - delay_before,
            .took_ns = cpu_ns_of(child) - cpu_before};
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return said;
}

namespace {

// Fifty threads at a time, that mostly sleep.
Said come_and_go(int rounds, const std::function<void(int)>& live) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i) threads.emplace_back(live, i);
  }
  return {};
}

}  // namespace

// Two thousand of some 40 ms.
Said threads_scenario(const Arguments&) {
  return come_and_go(40, [](int i) {
    for (int n = 0; n < 4; ++n) sleep_ns((9 + i % 3) * ms);
  });
}

// Four thousand of 5 to 20 ms.
Said short_threads_scenario(const Arguments&) {
  return come_and_go(80, [](int i) { sleep_ns((5 + i % 16) * ms); });
}

}  // namespace pkprof::wait
