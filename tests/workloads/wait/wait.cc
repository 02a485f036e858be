// SPDX-License-Identifier: Apache-2.0
#include "wait/wait.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace pkprof::wait {
namespace {

bool bystands = false;

uint64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

uint64_t now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

void sleep_ns(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

void stay_on(size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

void burn(uint64_t ns) {
  for (const uint64_t until = now_ns() + ns; now_ns() < until;) continue;
}

void work(uint64_t ns) {
  bystands ? sleep_ns(ns) : burn(ns);
}

bool is_bystander() {
  return bystands;
}

void become_bystander() {
  bystands = true;
}

pid_t in_child(const std::function<void()>& body) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) give_up("fork");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) body();
  _exit(0);
}

void give_up(const char* what) {
  std::fprintf(stderr, "pk_wait: ");
  std::perror(what);
  _exit(1);
}

uint64_t own_cpu_ns() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t run_delay_ns() {
  uint64_t ran = 0, delayed = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran >> delayed;
  return delayed;
}

uint64_t cpu_ns_of(pid_t process) {
  clockid_t clock{};
  if (clock_getcpuclockid(process, &clock)) give_up("a child's clock");
  return read_clock(clock);
}

}  // namespace pkprof::wait
