// SPDX-License-Identifier: Apache-2.0
// Spends so many milliseconds of CPU time in a library, in one thread or in each of several.
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu_clock.h"

extern "C" void hot_in_library(uint64_t turns);

int main(int argc, char** argv) {
  const uint64_t ns = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000) * 1'000'000;
  const auto work = [ns] {
    const clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
    for (const uint64_t end = cpu_ns(clock) + ns; cpu_ns(clock) < end;) hot_in_library(1'000'000);
  };
  std::vector<std::jthread> others;
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  others.reserve(static_cast<size_t>(count));
  for (int i = 1; i < count; ++i) others.emplace_back(work);
  work();
  return 0;
}
