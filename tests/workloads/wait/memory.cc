// SPDX-License-Identifier: Apache-2.0
// Waits for memory: in a cgroup that has too little, without an end by the OOM killer, until a
// child gives some back.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "wait/wait.h"

namespace pkprof::wait {
namespace {

constexpr size_t page = 4096, childs_bytes = 8 << 20, own_bytes = 12 << 20;

char* take(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  return static_cast<char*>(memory);
}

void touch(char* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += page) memory[at] = 1;
}

void tell(int to) {
  if (write(to, "x", 1) != 1) _exit(0);
}

void be_told(int from) {
  char byte;
  if (read(from, &byte, 1) != 1) _exit(0);
}

}  // namespace

// The cgroup of that directory has room for 16 MiB.
Said memory_scenario(const Arguments& groups) {
  std::ofstream(groups.front() + "/cgroup.procs") << getpid() << std::endl;
  // A CPU gives pages back in batches, those of others that were on it as well.
  stay_on(is_bystander() ? 1 : 0);
  int begins[2], has_it[2];
  if (pipe(begins) || pipe(has_it)) give_up("pipe");
  const pid_t child = in_child([&] {
    close(begins[1]);
    while (true) {
      be_told(begins[0]);
      char* const memory = take(childs_bytes);
      touch(memory, childs_bytes);
      tell(has_it[1]);
      sleep_ns(20 * ms);
      munmap(memory, childs_bytes);
    }
  });
  Said said{.others = {child}};
  for (const uint64_t end = now_ns() + lasts; now_ns() < end;) {
    tell(begins[1]);
    be_told(has_it[0]);
    char* const memory = take(own_bytes);
    said.waited_ns += blocked_time_of([&] { touch(memory, own_bytes); });
    munmap(memory, own_bytes);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : {begins[0], begins[1], has_it[0], has_it[1]}) close(fd);
  return said;
}

}  // namespace pkprof::wait
