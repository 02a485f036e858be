// SPDX-License-Identifier: Apache-2.0
// Hot spots in user code, in system calls and in page faults, each a share of its own; and a
// function that is called from two places, in one of which it takes about three times as long: the
// processor has its own ideas of how long a turn of a loop takes, so it is measured, and printed.
// Links nothing of ours: it is also built with -pg.
//
//   pk_seamless [SECONDS of CPU time]
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cpu_clock.h"

namespace {

constexpr size_t chunk = size_t{1} << 20;
char buffer[chunk];

// Not by the C library, whose functions have no frame pointers: their callers would be missing.
long call_read(int fd, char* to, size_t size) {
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(0), "D"(fd), "S"(to), "d"(size)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace

// A function that needs no stack gets no frame pointer, whatever the compiler is told.
extern "C" __attribute__((noinline)) void burn(uint64_t turns) {
  for (volatile uint64_t left = turns; left != 0;) left = left - 1;
}

// The comments keep the compiler from making a jump of the last call.

extern "C" __attribute__((noinline)) void burn_short(uint64_t turns) {
  burn(turns);
  asm volatile("# short");
}

extern "C" __attribute__((noinline)) void burn_long(uint64_t turns) {
  burn(3 * turns);
  asm volatile("# long");
}

extern "C" __attribute__((noinline)) void read_zeros(int fd) {
  for (int i = 0; i < 8; ++i) {
    if (call_read(fd, buffer, chunk) != static_cast<long>(chunk)) std::abort();
  }
  asm volatile("# read");
}

extern "C" __attribute__((noinline)) void touch_pages() {
  char* const pages = static_cast<char*>(
      mmap(nullptr, 2 * chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (pages == MAP_FAILED) std::abort();
  for (size_t i = 0; i < 2 * chunk; i += 4096) pages[i] = 1;
  munmap(pages, 2 * chunk);
  asm volatile("# touch");
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const int fd = open("/dev/zero", O_RDONLY);
  if (fd < 0) return 1;
  const uint64_t end = cpu_ns() + static_cast<uint64_t>(seconds * 1e9);
  // No two rounds are equally long: in step with a profiler's clock, the same place of each would
  // be hit again and again.
  std::minstd_rand random;
  uint64_t brief = 0;
  uint64_t longer = 0;
  for (uint64_t now = cpu_ns(); now < end;) {
    const uint64_t turns = 100'000 + random() % 200'000;
    burn_short(turns);
    const uint64_t then = cpu_ns();
    burn_long(turns);
    const uint64_t after = cpu_ns();
    brief += then - now;
    longer += after - then;
    read_zeros(fd);
    touch_pages();
    now = cpu_ns();
  }
  std::printf("%.4f\n", static_cast<double>(longer) / static_cast<double>(brief));
  return 0;
}
