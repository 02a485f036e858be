// SPDX-License-Identifier: Apache-2.0
// Nothing at all: the Minix paper's t_empty. With an argument, so many turns of a loop before.
#include <cstdint>
#include <cstdlib>

int main(int argc, char** argv) {
  for (uint64_t i = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0; i != 0; --i)
    asm volatile("" : "+r"(i));
  return 0;
}
