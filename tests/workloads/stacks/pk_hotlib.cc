// SPDX-License-Identifier: Apache-2.0
// A hot spot in a shared library.
#include <cstdint>

extern "C" __attribute__((noinline)) void hot_in_library(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("" : "+r"(i));
}
