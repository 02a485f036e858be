// SPDX-License-Identifier: Apache-2.0
// A plug-in: one function, by the name that the build gives it.
#include <cstdint>

extern "C" __attribute__((noinline)) void PK_FUNCTION(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("" : "+r"(i));
}
