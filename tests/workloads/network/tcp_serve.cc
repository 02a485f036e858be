// SPDX-License-Identifier: Apache-2.0
// The server: an epoll loop over one listening socket, in one process or in several that share it.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "address.h"
#include "tcp.h"

namespace pkprof::workload {
namespace {

constexpr size_t kChunk = 65536;

class Server {
 public:
  Server(const TcpServe& options, int listener, WorkerStats& stats)
      : options_(options), listener_(listener), stats_(stats), buffer_(kChunk) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    null_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (epoll_ < 0 || null_ < 0 || pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
      die("setting up the server");
    }
    // One worker is woken for a new connection, not all of them.
    watch(listener_, EPOLLIN | EPOLLEXCLUSIVE);
  }

  void run() {
    std::array<epoll_event, 64> events = {};
    while (!stopped()) {
      const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < n; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if (event.data.fd == listener_) {
          accept_all();
        } else if (!serve(event.data.fd)) {
          close(event.data.fd);  // leaves the epoll set by itself
        }
      }
    }
  }

 private:
  void watch(int fd, uint32_t events) {
    epoll_event event = {};
    event.events = events;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll");
  }

  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      ++stats_.operations;
      watch(fd, EPOLLIN);
      if (options_.accept_ms > 0) {
        sleep_until_ns(now_ns() + options_.accept_ms * 1'000'000);
        return;
      }
    }
  }

  // One read from the connection. False: it is at its end.
  bool serve(int fd) {
    const ssize_t n = options_.splice ? splice(fd, nullptr, pipe_[1], nullptr, kChunk, 0)
                                      : recv(fd, buffer_.data(), buffer_.size(), 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    stats_.bytes += static_cast<uint64_t>(n);
    if (options_.work_us > 0) burn_us(options_.work_us);
    const bool echo = options_.mode == "echo";
    if (options_.splice) return drain_pipe(echo ? fd : null_, static_cast<size_t>(n));
    return !echo || send_all(fd, static_cast<size_t>(n));
  }

  // Out of the pipe again, all of it, since the next connection needs it empty.
  bool drain_pipe(int to, size_t left) {
    while (left > 0) {
      const ssize_t n = splice(pipe_[0], nullptr, to, nullptr, left, 0);
      if (n > 0) {
        left -= static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN && !stopped()) {
        wait_writable(to);
      } else if (n == 0 || errno != EINTR || stopped()) {
        if (to != null_) drain_pipe(null_, left);
        return false;
      }
    }
    return true;
  }

  bool send_all(int fd, size_t size) {
    for (size_t done = 0; done < size;) {
      const ssize_t n = send(fd, buffer_.data() + done, size - done, MSG_NOSIGNAL);
      if (n > 0) {
        done += static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN && !stopped()) {
        wait_writable(fd);
      } else if (n == 0 || errno != EINTR || stopped()) {
        return false;
      }
    }
    return true;
  }

  // A client that does not read holds up the others: good enough for a workload.
  static void wait_writable(int fd);

  const TcpServe& options_;
  int listener_;
  WorkerStats& stats_;
  std::vector<char> buffer_;
  int epoll_ = -1;
  int null_ = -1;
  std::array<int, 2> pipe_ = {-1, -1};
};

void Server::wait_writable(int fd) {
  pollfd p = {fd, POLLOUT, 0};
  poll(&p, 1, 100);
}

}  // namespace

int tcp_serve(const TcpServe& options) {
  begin(options.common);
  const int listener =
      bound_socket(parse_address(options.bind, options.port), SOCK_STREAM | SOCK_NONBLOCK, false);
  if (listen(listener, 4096) != 0) die("listen");
  say_ready();
  const uint64_t start = now_ns();
  const auto stats = run_workers(
      options.prefork, [&](int, WorkerStats& mine) { Server(options, listener, mine).run(); });
  uint64_t connections = 0;
  uint64_t bytes = 0;
  for (const auto& s : stats) {
    connections += s.operations;
    bytes += s.bytes;
  }
  print_result({{"program", "pk_tcp serve"},
                {"wall_ns", now_ns() - start},
                {"connections", connections},
                {"bytes", bytes},
                {"workers", to_json(stats)}});
  return 0;
}

}  // namespace pkprof::workload
