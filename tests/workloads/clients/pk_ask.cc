// SPDX-License-Identifier: Apache-2.0
// A client that asks pk_answer for CPU time, so many times a second on average.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ask.h"
#include "workload.h"

namespace {

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool escaped = text[i] == '\\' && (next == 'r' || next == 'n');
    out += escaped ? (next == 'r' ? '\r' : '\n') : text[i];
    i += escaped ? 1 : 0;
  }
  return out;
}

// A request of another protocol, whose answer is always so long.
bool exchange(int fd, const std::string& request, size_t answer_bytes) {
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size()))
    return false;
  char answer[4096];
  for (size_t got = 0; got < answer_bytes;) {
    const ssize_t n = read(fd, answer, std::min(sizeof answer, answer_bytes - got));
    if (n == 0 || (n < 0 && (errno != EINTR || pkprof::workload::stopped()))) return false;
    if (n > 0) got += static_cast<size_t>(n);
  }
  return true;
}

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  Common common;
  Place to;
  double rate = 0;
  int cost_us = 100;
  int connections = 1;
  bool anew = false;
  std::string fifo;
  std::string queue;
  std::string text;
  std::string told;
  size_t answer_bytes = 0;
  ArgParser app("A client that asks for CPU time.");
  app.show_defaults();
  common.add_to(app);
  app.add("--to", to.address, "address of the server");
  app.add("--port", to.port, "its port");
  app.add("--unix", to.path, "or its socket");
  app.add("--datagrams", to.datagrams, "in datagrams");
  app.add("--fifo", fifo, "write to this FIFO, and wait for no answer");
  app.add("--queue", queue, "the same, to this POSIX message queue");
  app.add("--rate", rate, "requests a second in all; 0: one after the other");
  app.add("--cost-us", cost_us, "CPU time to ask for");
  app.add("--connections", connections, "by turns").range(1, 1000);
  app.add("--anew", anew, "connect for each request");
  app.add("--text", text, "to another server: this text, with \\r and \\n");
  app.add("--truth", told, "a file for how many answers there were: pid and number");
  app.add("--answer-bytes", answer_bytes, "of such a server's answer");
  if (const auto end = app.parse(argc, argv)) return *end;
  const Truth truth(told);
  text = unescaped(text);
  begin(common);

  std::vector<int> fds;
  fds.reserve(static_cast<size_t>(connections));
  const bool one_way = !fifo.empty() || !queue.empty();
  const auto open_one = [&] {
    if (!fifo.empty()) return open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
    if (!queue.empty()) return static_cast<int>(mq_open(queue.c_str(), O_WRONLY));
    return to.connect();
  };
  for (int i = 0; i < connections; ++i) fds.push_back(open_one());
  if (fds[0] < 0) die("open");
  say_ready();
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
    if (anew) close(std::exchange(fds[0], to.connect()));
    const int fd = fds[done % fds.size()];
    Ask ask{static_cast<uint32_t>(cost_us), getpid()};
    if (!text.empty()) {
      if (!exchange(fd, text, answer_bytes)) break;
    } else if (!queue.empty()) {
      if (mq_send(fd, reinterpret_cast<const char*>(&ask), sizeof ask, 0)) break;
    } else if (!write_all(fd, ask) || (!one_way && !read_all(fd, ask))) {
      break;
    }
    ++done;
    if (!told.empty()) truth.add(getpid(), 1);
  }
  print_result({{"done", done}, {"wall_ns", now_ns() - start}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
