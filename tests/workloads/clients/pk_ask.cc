// SPDX-License-Identifier: Apache-2.0
// A client that asks pk_answer for CPU time, so many times a second on average.
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "ask.h"
#include "workload.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  Common common;
  Place to;
  double rate = 0;
  int cost_us = 100;
  int connections = 1;
  bool pipe = false;
  ArgParser app("A client that asks for CPU time.");
  app.show_defaults();
  common.add_to(app);
  app.add("--to", to.address, "address of the server");
  app.add("--port", to.port, "its port");
  app.add("--unix", to.path, "or its socket");
  app.add("--datagrams", to.datagrams, "in datagrams");
  app.add("--pipe", pipe, "write to standard output, and wait for no answer");
  app.add("--rate", rate, "requests a second in all; 0: one after the other");
  app.add("--cost-us", cost_us, "CPU time to ask for");
  app.add("--connections", connections, "by turns").range(1, 1000);
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);

  std::vector<int> fds;
  for (int i = 0; i < connections; ++i) fds.push_back(pipe ? STDOUT_FILENO : to.connect());
  if (!pipe) say_ready();
  // At random moments: what comes at regular ones may meet the sampling clock always, or never.
  std::mt19937_64 random(static_cast<uint64_t>(getpid()));
  std::exponential_distribution<double> pause_s(rate > 0 ? rate : 1);
  const uint64_t start = now_ns();
  uint64_t next = start;
  uint64_t done = 0;
  while (!stopped()) {
    if (rate > 0) {
      sleep_until_ns(next);
      next += static_cast<uint64_t>(pause_s(random) * 1e9);
    }
    const int fd = fds[done % fds.size()];
    Ask ask{static_cast<uint32_t>(cost_us), getpid()};
    if (!write_all(fd, ask)) break;
    if (!pipe && !read_all(fd, ask)) break;
    ++done;
  }
  if (pipe) return 0;
  print_result({{"done", done}, {"wall_ns", now_ns() - start}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
