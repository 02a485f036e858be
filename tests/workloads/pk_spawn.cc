// SPDX-License-Identifier: Apache-2.0
// Short-lived processes at a steady rate: each is this program again, burns a little CPU and is
// gone before anybody could look it up in /proc.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "workload.h"

namespace {

using namespace pkprof::workload;

// Those that have ended; with no flags, waits until no more than `most` are left.
void reap(int flags, int most, int& running, uint64_t& failed) {
  int status = 0;
  while (running > most && waitpid(-1, &status, flags) > 0) {
    --running;
    failed += status != 0;
  }
}

int run(int argc, char** argv) {
  ArgParser app("Starts short-lived processes at a steady rate.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  double rate = 200;
  uint64_t work_us = 1000;
  int at_once = 4;
  bool child = false;
  app.add("--rate", rate, "processes a second").positive();
  app.add("--work-us", work_us, "CPU time of each, in microseconds");
  app.add("--at-once", at_once, "alive at a time; the rate is lower where they take longer")
      .positive();
  app.add("--child", child, "be one of the short-lived processes");
  if (const auto end = app.parse(argc, argv)) return *end;
  if (child) {
    burn_us(work_us);
    return 0;
  }
  begin(common);
  say_ready();

  const std::string work = std::to_string(work_us);
  const auto interval = static_cast<uint64_t>(1e9 / rate);
  const uint64_t start = now_ns();
  uint64_t next = start;
  uint64_t spawned = 0;
  uint64_t failed = 0;
  int running = 0;
  while (!stopped()) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      execl("/proc/self/exe", "pk_spawn", "--child", "--work-us", work.c_str(), nullptr);
      _exit(127);
    }
    ++spawned;
    ++running;
    reap(WNOHANG, 0, running, failed);
    reap(0, at_once - 1, running, failed);
    next = std::max(next + interval, now_ns() - std::min(now_ns(), 10 * interval));
    sleep_until_ns(next);
  }
  while (running > 0) reap(0, 0, running, failed);
  print_result({{"program", "pk_spawn"},
                {"wall_ns", now_ns() - start},
                {"spawned", spawned},
                {"failed", failed},
                {"work_us", work_us}});
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
