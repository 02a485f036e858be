// SPDX-License-Identifier: Apache-2.0
// Servers of the usual shapes. Each burns the CPU time that a request asks for, and answers it: one
// thread that waits for many, one that reads all that is there before it works, a pool of threads
// behind a queue, a process for each connection, a proxy, datagrams, io_uring.
// Some work as soon as they have accepted a connection, before they read from it.
#include <liburing.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ask.h"
#include "workload.h"

namespace {

using namespace pkprof::workload;

struct Options {
  Common common;
  Place at;
  Place upstream;
  std::string mode;
  int threads = 2;
  int cost_us = 100;  // of a proxy's own, and for a connection
  std::string truth;  // a file
};

// The CPU time that was burned for each client, as the server itself knows.
const Truth* truth = nullptr;

void burn(const Ask& ask, uint64_t us) {
  truth->add(ask.client, burn_ns(us));
}

// For a connection that was accepted: to 127.0.0.N, N times as much.
uint64_t burn_for_connection(int fd, int cost_us) {
  sockaddr_in at{};
  socklen_t length = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  const bool known = getsockname(fd, address, &length) == 0 && at.sin_family == AF_INET;
  const uint32_t times = known ? ntohl(at.sin_addr.s_addr) & 0xff : 1;
  return burn_ns(static_cast<uint64_t>(cost_us) * times);
}

// One thread and all its connections. `work` gets what is ready, all at once.
template <typename Work, typename Accepted>
void loop(int listener, Work work, Accepted accepted) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const auto add = [epoll](int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
  };
  add(listener);
  std::vector<int> ready;
  while (!stopped()) {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, -1);
    ready.clear();
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd != listener) {
        ready.push_back(events[i].data.fd);
        continue;
      }
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      accepted(fd);
      add(fd);
    }
    work(ready);
  }
}

template <typename Work>
void loop(int listener, Work work) {
  loop(listener, work, [](int) {});
}

void answer_one(int fd) {
  Ask ask;
  if (!read_all(fd, ask)) {
    close(fd);
    return;
  }
  burn(ask, ask.cost_us);
  write_all(fd, ask);
}

void serve_by_turns(int listener) {
  loop(listener, [](const std::vector<int>& ready) {
    for (const int fd : ready) answer_one(fd);
  });
}

void serve_in_batches(int listener) {
  loop(listener, [](const std::vector<int>& ready) {
    std::vector<std::pair<int, Ask>> asks;
    for (const int fd : ready) {
      Ask ask;
      if (read_all(fd, ask))
        asks.emplace_back(fd, ask);
      else
        close(fd);
    }
    for (const auto& [fd, ask] : asks) {
      burn(ask, ask.cost_us);
      write_all(fd, ask);
    }
  });
}

void serve_by_pool(int listener, int threads) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<int, Ask>> queue;
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopped() || !queue.empty(); });
        if (stopped()) return;
        const auto [fd, ask] = queue.front();
        queue.pop_front();
        lock.unlock();
        burn(ask, ask.cost_us);
        write_all(fd, ask);
      }
    });
  }
  loop(listener, [&](const std::vector<int>& ready) {
    for (const int fd : ready) {
      Ask ask;
      if (!read_all(fd, ask)) {
        close(fd);
        continue;
      }
      const std::scoped_lock lock(mutex);
      queue.emplace_back(fd, ask);
      changed.notify_one();
    }
  });
  changed.notify_all();
  for (std::thread& thread : pool) thread.join();
}

void serve_by_processes(int listener) {
  std::vector<pid_t> children;
  while (!stopped()) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const pid_t child = fork();
    if (child == 0) {
      close(listener);
      for (Ask ask; read_all(fd, ask);) {
        burn(ask, ask.cost_us);
        write_all(fd, ask);
      }
      _exit(0);
    }
    children.push_back(child);
    close(fd);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// What was done for a connection is told of once its client says who it is.
void serve_accepted(int fd, uint64_t burned) {
  Ask ask;
  if (read_all(fd, ask)) {
    truth->add(ask.client, burned);
    write_all(fd, ask);
  }
  close(fd);
}

void serve_as_accepted(int listener, int cost_us) {
  std::map<int, uint64_t> burned;
  loop(
      listener,
      [&](const std::vector<int>& ready) {
        for (const int fd : ready) serve_accepted(fd, burned[fd]);
      },
      [&](int fd) { burned[fd] = burn_for_connection(fd, cost_us); });
}

void serve_by_acceptors(int listener, int threads, int cost_us) {
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([=] {
      while (!stopped()) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) serve_accepted(fd, burn_for_connection(fd, cost_us));
      }
    });
  while (!stopped()) usleep(10'000);  // any of them may have had the signal
  _exit(0);                           // they wait for connections
}

void serve_by_forks(int listener, int cost_us) {
  signal(SIGCHLD, SIG_IGN);
  while (!stopped()) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    if (fork() == 0) {
      close(listener);
      serve_accepted(fd, burn_for_connection(fd, cost_us));
      _exit(0);
    }
    close(fd);
  }
}

void serve_as_proxy(int listener, const Options& options) {
  const int upstream = options.upstream.connect();
  loop(listener, [&](const std::vector<int>& ready) {
    for (const int fd : ready) {
      Ask ask;
      if (!read_all(fd, ask)) {
        close(fd);
        continue;
      }
      burn(ask, static_cast<uint64_t>(options.cost_us));
      if (!write_all(upstream, ask) || !read_all(upstream, ask)) return;
      burn(ask, static_cast<uint64_t>(options.cost_us));
      write_all(fd, ask);
    }
  });
}

void serve_datagrams(int fd) {
  while (!stopped()) {
    Ask ask;
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    if (recvfrom(fd, &ask, sizeof ask, 0, address, &length) != sizeof ask) continue;
    burn(ask, ask.cost_us);
    if (length) sendto(fd, &ask, sizeof ask, 0, address, length);
  }
}

// What a connection has in the ring, one thing at a time.
struct Exchange {
  int fd = -1;
  bool sends = false;
  Ask ask;
};

int checked(int result, const char* what) {
  if (result >= 0) return result;
  errno = -result;
  die(what);
}

void serve_by_ring(int listener) {
  io_uring ring;
  checked(io_uring_queue_init(64, &ring, 0), "io_uring_queue_init");
  const auto submit = [&ring](Exchange* of, auto prepare) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    prepare(sqe);
    io_uring_sqe_set_data(sqe, of);
  };
  const auto accept_next = [&] {
    submit(nullptr, [&](io_uring_sqe* sqe) {
      io_uring_prep_accept(sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    });
  };
  const auto go_on = [&](Exchange* of) {
    submit(of, [of](io_uring_sqe* sqe) {
      if (of->sends)
        io_uring_prep_send(sqe, of->fd, &of->ask, sizeof of->ask, 0);
      else
        io_uring_prep_recv(sqe, of->fd, &of->ask, sizeof of->ask, MSG_WAITALL);
    });
  };
  std::deque<Exchange> exchanges;
  accept_next();
  while (!stopped()) {
    const int waited = io_uring_submit_and_wait(&ring, 1);
    if (waited < 0 && waited != -EINTR) checked(waited, "io_uring_submit_and_wait");
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      auto* of = static_cast<Exchange*>(io_uring_cqe_get_data(cqe));
      const int result = cqe->res;
      io_uring_cqe_seen(&ring, cqe);
      if (!of) {
        if (result >= 0) go_on(&exchanges.emplace_back(Exchange{.fd = result}));
        accept_next();
      } else if (result != static_cast<int>(sizeof of->ask)) {
        close(of->fd);
      } else {
        if (!of->sends) burn(of->ask, of->ask.cost_us);
        of->sends = !of->sends;
        go_on(of);
      }
    }
  }
  io_uring_queue_exit(&ring);
}

int run(int argc, char** argv) {
  Options options;
  ArgParser app("Servers of the usual shapes.");
  app.show_defaults();
  options.common.add_to(app);
  app.add("--mode", options.mode, "how it serves")
      .one_of({"turns", "batches", "pool", "processes", "proxy", "datagrams", "ring", "accepts",
               "acceptors", "forks"})
      .required();
  app.add("--bind", options.at.address, "local address");
  app.add("--port", options.at.port, "local port");
  app.add("--unix", options.at.path, "or a socket's path");
  app.add("--threads", options.threads, "of a pool").range(1, 64);
  app.add("--cost-us", options.cost_us,
          "CPU time of a proxy's own, before and after; or for a connection");
  app.add("--upstream", options.upstream.address, "of a proxy: where it asks");
  app.add("--upstream-port", options.upstream.port, "and the port there");
  app.add("--upstream-unix", options.upstream.path, "or the socket");
  app.add("--truth", options.truth, "a file for what was done for each client: pid and ns");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(options.common);
  const Truth known(options.truth);
  truth = &known;
  options.at.datagrams = options.mode == "datagrams";
  const int listener = options.at.listen();
  say_ready();
  if (options.mode == "turns") serve_by_turns(listener);
  if (options.mode == "batches") serve_in_batches(listener);
  if (options.mode == "pool") serve_by_pool(listener, options.threads);
  if (options.mode == "processes") serve_by_processes(listener);
  if (options.mode == "proxy") serve_as_proxy(listener, options);
  if (options.mode == "accepts") serve_as_accepted(listener, options.cost_us);
  if (options.mode == "acceptors") serve_by_acceptors(listener, options.threads, options.cost_us);
  if (options.mode == "forks") serve_by_forks(listener, options.cost_us);
  if (options.mode == "ring") serve_by_ring(listener);
  if (options.mode == "datagrams") serve_datagrams(listener);
  print_result({{"mode", options.mode}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
