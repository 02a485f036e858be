// SPDX-License-Identifier: Apache-2.0
// Does what no unwinder expects, for so many seconds: overwrites its stack and puts it back, runs
// code in memory that comes and goes, and in a file that is rewritten and replaced meanwhile.
// Prints how many rounds it did; 1: it was harmed itself.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cpu_clock.h"

namespace {

constexpr size_t page = 4096;
// add $1, %rdi in turns; mov %rdi, %rax; ret. The frame pointer is no such thing meanwhile.
constexpr unsigned char code[] = {0x55,                                // push %rbp
                                  0x48, 0xc7, 0xc5, 0xff, 0xff, 0, 0,  // mov $65535, %rbp
                                  0x48, 0xff, 0xc7,                    // inc %rdi
                                  0x48, 0xff, 0xcd,                    // dec %rbp
                                  0x75, 0xf8,                          // jnz, to inc
                                  0x48, 0x89, 0xf8,                    // mov %rdi, %rax
                                  0x5d, 0xc3};                         // pop %rbp; ret
constexpr uint64_t steps = 65535;

volatile uint64_t spun;

void spin() {
  for (int i = 0; i < 50'000; ++i) spun = spun + 1;
}

// All from here to the caller's frame is something else for a while.
__attribute__((noinline)) bool overwrite_stack(uint64_t seed) {
  auto* frame = static_cast<volatile uint64_t*>(__builtin_frame_address(0));
  constexpr int words = 16;
  uint64_t saved[words];
  for (int i = 0; i < words; ++i) saved[i] = frame[i];
  for (int i = 0; i < words; ++i) frame[i] = (seed += 0x9e3779b97f4a7c15) >> (seed & 63);
  for (int i = 0; i < 50'000; ++i) spun = spun + 1;  // no call: it would return somewhere else
  for (int i = 0; i < words; ++i) frame[i] = saved[i];
  return true;
}

bool run(void* at) {
  const auto count = reinterpret_cast<uint64_t (*)(uint64_t)>(at);
  return count(7) == 7 + steps;
}

bool run_anonymous() {
  void* at =
      mmap(nullptr, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return false;
  std::memcpy(at, code, sizeof code);
  bool right = run(at);
  right &= mprotect(at, page, PROT_NONE) == 0 && mprotect(at, page, PROT_READ | PROT_EXEC) == 0;
  return run(at) && munmap(at, page) == 0 && right;
}

// The code stays where it is in the file; what is around it is another thing each time.
bool run_file(const std::string& path, uint64_t round) {
  std::vector<unsigned char> bytes(4 * page, static_cast<unsigned char>(round));
  std::memcpy(bytes.data(),
              "\x7f"
              "ELF\2\1\1",
              7);
  std::memcpy(bytes.data() + page, code, sizeof code);
  const int flags = round % 3 ? O_RDWR | O_CREAT : O_RDWR | O_CREAT | O_TRUNC;
  const int fd = open(path.c_str(), flags, 0755);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return false;
  void* at = mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, page);
  if (at == MAP_FAILED) return false;
  bool right = run(at);
  if (round % 3 == 0) unlink(path.c_str());
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(byte * 5 + 3);
  right &= pwrite(fd, bytes.data(), page, 0) == static_cast<ssize_t>(page) &&
           pwrite(fd, bytes.data(), page, 2 * page) == static_cast<ssize_t>(page);
  right &= run(at);
  return munmap(at, page) == 0 && close(fd) == 0 && right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const double seconds = std::strtod(argv[1], nullptr);
  const std::string path = argv[2];
  const uint64_t end = cpu_ns(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds * 1e9);
  uint64_t rounds = 0;
  bool right = true;
  for (; right && cpu_ns(CLOCK_MONOTONIC) < end; ++rounds) {
    spin();
    right = overwrite_stack(rounds) && run_anonymous() && run_file(path, rounds);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(rounds));
  return right ? 0 : 1;
}
