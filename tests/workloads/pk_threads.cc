// SPDX-License-Identifier: Apache-2.0
// Threads whose parts in their process's time are known: some that burn CPU in given proportions,
// or one that takes datagrams from a socket that another opened.
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "address.h"
#include "workload.h"

namespace {

using namespace pkprof::workload;

uint64_t own_cpu_ns() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void work() {
  volatile uint64_t sink = 1;
  for (int i = 0; i < 1000; ++i) sink = sink * 6364136223846793005U + 1;
}

struct Thread {
  std::string name;
  uint64_t share = 0;  // ms of each round
  int tid = 0;
  uint64_t cpu_ns = 0;
  uint64_t packets = 0;
};

void be(Thread& self) {
  pthread_setname_np(pthread_self(), self.name.c_str());
  self.tid = gettid();
}

// Each round every thread burns up to its shares so far, and they wait for each other: what a
// thread used too much of, also in waiting, is off its next round, and the proportions hold.
void burn_together(std::vector<Thread>& threads) {
  bool go = true;
  const auto next = [&]() noexcept { go = !stopped(); };
  std::barrier round(static_cast<ptrdiff_t>(threads.size()), next);
  std::vector<std::jthread> running;
  running.reserve(threads.size());
  for (Thread& self : threads) {
    running.emplace_back([&] {
      be(self);
      for (uint64_t until = 0; go;) {
        until += self.share * 1'000'000;
        while (own_cpu_ns() < until) work();
        round.arrive_and_wait();
      }
      self.cpu_ns = own_cpu_ns();
    });
  }
}

// The first thread opened the socket and holds it; the other takes what comes.
void take(Thread& self, int fd) {
  std::jthread([&] {
    be(self);
    char buffer[2048];
    while (!stopped())
      if (recv(fd, buffer, sizeof buffer, 0) >= 0) ++self.packets;
    self.cpu_ns = own_cpu_ns();
  }).join();
}

int run(int argc, char** argv) {
  ArgParser app("Threads whose parts in their process's time are known.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  std::vector<uint64_t> shares = {30, 10};
  uint16_t port = 0;
  app.add("--shares", shares, "milliseconds of CPU time of each thread, each round")
      .separated_by(':');
  app.add("--recv", port, "instead: one thread that receives datagrams on this port");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  std::vector<Thread> threads;
  if (port != 0) {
    const int fd = bound_socket(parse_address("::", port), SOCK_DGRAM, false);
    const timeval soon = {0, 50'000};  // the alarm may be another thread's
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) != 0) die("SO_RCVTIMEO");
    threads.push_back({.name = "taker"});
    say_ready();
    take(threads[0], fd);
  } else {
    for (const uint64_t share : shares)
      threads.push_back({.name = "burn-" + std::to_string(share), .share = share});
    say_ready();
    burn_together(threads);
  }
  auto list = nlohmann::ordered_json::array();
  for (const Thread& t : threads)
    list.push_back(
        {{"name", t.name}, {"tid", t.tid}, {"cpu_ns", t.cpu_ns}, {"packets", t.packets}});
  print_result({{"program", "pk_threads"}, {"threads", list}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
