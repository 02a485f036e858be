// SPDX-License-Identifier: Apache-2.0
// Spends its time in a library, in one thread or in several.
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" void hot_in_library(uint64_t turns);

int main(int argc, char** argv) {
  const uint64_t turns = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000'000;
  std::vector<std::jthread> others;
  for (int i = 1; i < (argc > 2 ? std::atoi(argv[2]) : 1); ++i)
    others.emplace_back(hot_in_library, turns);
  hot_in_library(turns);
  return 0;
}
