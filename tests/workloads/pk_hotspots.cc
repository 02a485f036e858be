// SPDX-License-Identifier: Apache-2.0
// Two hot spots, of which the second is twice as hot: bogusa() and bogusb() of the Minix `profile`
// command. The same loop, at the same place of a cache line, so that a turn of either takes as
// long; in rounds, so that what else the machine does is shared alike. Links nothing of ours: it is
// built in every way that a program can be.
#include <cstdint>
#include <cstdlib>

namespace {

constexpr uint64_t kTurns = 10'000'000;

}  // namespace

// The comments keep the compiler from making one function of two that are equal.
extern "C" __attribute__((noinline, aligned(64))) void bogusa(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("# a" : "+r"(i));
}

extern "C" __attribute__((noinline, aligned(64))) void bogusb(uint64_t turns) {
  for (uint64_t i = turns; i != 0; --i) asm volatile("# b" : "+r"(i));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  for (int i = 0; i < rounds; ++i) {
    bogusa(kTurns);
    bogusb(2 * kTurns);
  }
  return 0;
}
