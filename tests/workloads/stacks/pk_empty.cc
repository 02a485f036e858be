// SPDX-License-Identifier: Apache-2.0
// Nothing at all: the Minix paper's t_empty. With an argument, so many microseconds of CPU time in
// main.
#include <cstdlib>

#include "cpu_clock.h"

int main(int argc, char** argv) {
  if (argc < 2) return 0;
  const uint64_t end = cpu_ns() + std::strtoull(argv[1], nullptr, 10) * 1000;
  while (cpu_ns() < end)
    for (uint64_t i = 20'000; i != 0; --i) asm volatile("" : "+r"(i));
  return 0;
}
