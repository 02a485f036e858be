// SPDX-License-Identifier: Apache-2.0
// As long at work as asleep: the Minix paper's t_blocking.
#include <time.h>

#include <cstdlib>

#include "cpu_clock.h"

// Looks at the clock so seldom that it takes no time.
extern "C" __attribute__((noinline)) void waste_time(uint64_t ns) {
  for (const uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
    for (uint64_t i = 1'000'000; i != 0; --i) asm volatile("" : "+r"(i));
}

extern "C" __attribute__((noinline)) void save_time(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

int main(int argc, char** argv) {
  const uint64_t ms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  for (int i = 0; i < 10; ++i) {
    waste_time(ms * 100'000);
    save_time(ms * 100'000);
  }
  return 0;
}
