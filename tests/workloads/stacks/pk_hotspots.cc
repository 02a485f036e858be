// SPDX-License-Identifier: Apache-2.0
// Two hot spots, of which the second is twice as hot: bogusa() and bogusb() of the Minix `profile`
// command. In rounds of uneven length, or a clock could keep step with them. Links nothing of ours:
// it is built in every way that a program can be.
#include <cstdint>
#include <cstdlib>

// The comments keep the compiler from making one function of two that are equal.
extern "C" __attribute__((noinline, aligned(64))) void bogusa(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("# a" : "+r"(i));
}

extern "C" __attribute__((noinline, aligned(64))) void bogusb(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("# b" : "+r"(i));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  uint32_t random = 1;
  for (int i = 0; i < rounds; ++i) {
    random = random * 1664525 + 1013904223;
    const uint64_t turns = 250'000 + (random >> 8) % 500'000;
    bogusa(turns);
    bogusb(2 * turns);
  }
  return 0;
}
