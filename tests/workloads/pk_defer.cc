// SPDX-License-Identifier: Apache-2.0
// Makes the kernel put work off, of one kind: to a work queue (a terminal), to timers, to RCU, to
// other CPUs (barriers, mappings taken away).
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"

namespace {

using namespace pkprof::workload;

// A pseudo-terminal: what is written to one side a kworker carries to the other.
uint64_t terminal() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) || unlockpt(master)) die("a pseudo-terminal");
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) die("a pseudo-terminal");
  termios raw{};
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  char text[2048] = {};
  uint64_t bytes = 0;
  while (!stopped()) {
    const ssize_t n = write(master, text, sizeof text);
    if (n <= 0) continue;
    for (ssize_t left = n; left > 0 && !stopped();) {
      const ssize_t got = read(slave, text, sizeof text);
      if (got > 0) left -= got;
    }
    bytes += static_cast<uint64_t>(n);
  }
  return bytes;
}

// Threads that wait for what never comes, a few ticks at a time.
uint64_t timeouts(int threads) {
  std::atomic<uint64_t> waits = 0;
  std::vector<std::thread> all;
  all.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&waits] {
      const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const timeval wait = {0, 4000};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
      char byte = 0;
      while (!stopped()) {
        (void)!recv(fd, &byte, 1, 0);
        ++waits;
      }
      close(fd);
    });
  }
  for (std::thread& t : all) t.join();
  return waits;
}

// Sockets opened and closed: each is freed when no CPU can see it any more.
uint64_t close_sockets() {
  uint64_t sockets = 0;
  while (!stopped()) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    close(fd);
    ++sockets;
  }
  return sockets;
}

// All other CPUs are made to pass a barrier.
uint64_t barriers() {
  uint64_t count = 0;
  while (!stopped()) {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) < 0) die("membarrier");
    ++count;
  }
  return count;
}

void pin(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}

// A mapping used on one CPU and taken away on another.
uint64_t shoot_down(int cpu) {
  constexpr size_t bytes = 1 << 20;
  std::atomic<bool> end = false;
  std::thread elsewhere([&end] {
    volatile uint64_t sink = 1;
    while (!end) sink = sink * 6364136223846793005U + 1;
  });
  pin(elsewhere, cpu);
  uint64_t count = 0;
  while (!stopped()) {
    auto* p = static_cast<volatile char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (p == MAP_FAILED) die("mmap");
    p[0] = 1;
    munmap(const_cast<char*>(p), bytes);
    ++count;
  }
  end = true;
  elsewhere.join();
  return count;
}

int run(int argc, char** argv) {
  CLI::App app("Makes the kernel put work off.");
  app.option_defaults()->always_capture_default();
  Common common;
  common.add_to(app);
  std::string mode;
  int threads = 200;
  int other_cpu = 0;
  app.add_option("mode", mode, "terminal, timeouts, sockets, barriers, mappings")
      ->required()
      ->check(CLI::IsMember({"terminal", "timeouts", "sockets", "barriers", "mappings"}));
  app.add_option("--threads", threads, "of timeouts")->check(CLI::PositiveNumber);
  app.add_option("--other-cpu", other_cpu, "of mappings: where they are used, too");
  CLI11_PARSE(app, argc, argv);
  begin(common);
  say_ready();
  const uint64_t start = now_ns();
  const uint64_t done = mode == "terminal"   ? terminal()
                        : mode == "timeouts" ? timeouts(threads)
                        : mode == "sockets"  ? close_sockets()
                        : mode == "barriers" ? barriers()
                                             : shoot_down(other_cpu);
  print_result({{"program", "pk_defer"}, {"wall_ns", now_ns() - start}, {"done", done}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
