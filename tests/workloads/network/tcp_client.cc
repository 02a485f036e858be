// SPDX-License-Identifier: Apache-2.0
// The clients. Each is one process with one loop over its connections.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "address.h"
#include "tcp.h"

namespace pkprof::workload {
namespace {

constexpr size_t kPipeSize = 1 << 20;

// A connected socket, or -1 with errno.
int try_connect(const TcpClient& options, const Address& address) {
  const int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  if (!options.congestion.empty() &&
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.data(),
                 static_cast<socklen_t>(options.congestion.size())) != 0) {
    die("congestion control " + options.congestion);
  }
  if (options.pacing > 0 &&
      setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &options.pacing, sizeof options.pacing) != 0) {
    die("SO_MAX_PACING_RATE");
  }
  if (connect(fd, address.get(), address.length) == 0) return fd;
  const int err = errno;
  close(fd);
  errno = err;
  return -1;
}

std::vector<int> connect_all(const TcpClient& options) {
  const Address address = parse_address(options.to, options.port);
  std::vector<int> sockets;
  for (int i = 0; i < options.connections; ++i) {
    const int fd = try_connect(options, address);
    if (fd < 0) die("connecting to " + options.to);
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    sockets.push_back(fd);
  }
  return sockets;
}

// Keeps to a rate of operations; without one, never waits.
class Pace {
 public:
  explicit Pace(double per_second)
      : interval_(per_second > 0 ? 1e9 / per_second : 0), next_(static_cast<double>(now_ns())) {}
  // Call before `amount` operations.
  void wait(double amount) {
    if (interval_ <= 0) return;
    sleep_until_ns(static_cast<uint64_t>(next_));
    next_ = std::max(next_ + interval_ * amount, static_cast<double>(now_ns()) - 1e8);
  }

 private:
  double interval_;  // ns
  double next_;
};

// Sends the same block again and again, in the manner asked for.
class Sender {
 public:
  explicit Sender(const TcpClient& options)
      : options_(options), block_(static_cast<size_t>(options.size), 'x') {
    if (options.sendfile) {
      file_ = memfd_create("pk_tcp", MFD_CLOEXEC);
      if (file_ < 0 ||
          write(file_, block_.data(), block_.size()) != static_cast<ssize_t>(block_.size())) {
        die("making a file to send");
      }
    } else if (options.splice) {
      if (pipe2(pipe_, O_CLOEXEC) != 0) die("pipe");
      fcntl(pipe_[0], F_SETPIPE_SZ, kPipeSize);
    }
  }

  // Bytes sent, or -1 with errno.
  ssize_t send_to(int fd) {
    if (options_.sendfile) {
      off_t offset = 0;
      return sendfile(fd, file_, &offset, block_.size());
    }
    if (!options_.splice) return send(fd, block_.data(), block_.size(), MSG_NOSIGNAL);
    if (in_pipe_ == 0) {
      const iovec vector = {block_.data(), std::min(block_.size(), kPipeSize / 2)};
      const ssize_t n = vmsplice(pipe_[1], &vector, 1, 0);
      if (n < 0) return -1;
      in_pipe_ = static_cast<size_t>(n);
    }
    const ssize_t n = splice(pipe_[0], nullptr, fd, nullptr, in_pipe_, 0);
    if (n > 0) in_pipe_ -= static_cast<size_t>(n);
    return n;
  }

 private:
  const TcpClient& options_;
  std::vector<char> block_;
  int file_ = -1;
  int pipe_[2] = {-1, -1};
  size_t in_pipe_ = 0;
};

// Sends a request and reads all of the response. False: stopped, or the server went away.
bool request(int fd, std::vector<char>& buffer) {
  if (send(fd, buffer.data(), buffer.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) return false;
    die("sending a request");
  }
  for (size_t got = 0; got < buffer.size();) {
    const ssize_t n = recv(fd, buffer.data() + got, buffer.size() - got, 0);
    if (n == 0) die("the server closed the connection", false);
    if (n < 0) {
      if (errno == EINTR && stopped()) return false;
      if (errno == EINTR) continue;
      die("reading a response");
    }
    got += static_cast<size_t>(n);
  }
  return true;
}

uint64_t at_share(const std::vector<uint64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int tcp_stream(const TcpClient& options) {
  begin(options.common);
  const auto sockets = connect_all(options);
  Sender sender(options);
  say_ready();
  const uint64_t start = now_ns();
  Pace pace(options.rate);
  uint64_t bytes = 0;
  for (size_t turn = 0; !stopped(); ++turn) {
    pace.wait(options.size);
    if (stopped()) break;
    const ssize_t n = sender.send_to(sockets[turn % sockets.size()]);
    if (n > 0) {
      bytes += static_cast<uint64_t>(n);
    } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
      die("sending");
    }
  }
  print_result({{"program", "pk_tcp stream"}, {"wall_ns", now_ns() - start}, {"bytes", bytes}});
  return 0;
}

int tcp_rr(const TcpClient& options) {
  begin(options.common);
  const auto sockets = connect_all(options);
  std::vector<char> buffer(static_cast<size_t>(options.size), 'x');
  say_ready();
  const uint64_t start = now_ns();
  Pace pace(options.rate);
  std::vector<uint64_t> latencies;
  uint64_t transactions = 0;
  for (size_t turn = 0; !stopped(); ++turn) {
    pace.wait(1);
    const uint64_t before = now_ns();
    if (stopped() || !request(sockets[turn % sockets.size()], buffer)) break;
    ++transactions;
    if (latencies.size() < 1'000'000) latencies.push_back(now_ns() - before);
  }
  std::ranges::sort(latencies);
  print_result({{"program", "pk_tcp rr"},
                {"wall_ns", now_ns() - start},
                {"transactions", transactions},
                {"latency_p50_ns", at_share(latencies, 0.5)},
                {"latency_p99_ns", at_share(latencies, 0.99)}});
  return 0;
}

int tcp_connect(const TcpClient& options) {
  begin(options.common);
  const Address address = parse_address(options.to, options.port);
  say_ready();
  const uint64_t start = now_ns();
  Pace pace(options.rate);
  std::vector<int> open_sockets;
  uint64_t connections = 0;
  uint64_t errors = 0;
  while (!stopped()) {
    pace.wait(1);
    if (stopped()) break;
    const int fd = try_connect(options, address);
    if (fd < 0) {
      errors += errno != EINTR;
      // Out of ports, or nobody listens: do not turn into a busy loop of failures.
      sleep_until_ns(now_ns() + 100'000);
      continue;
    }
    ++connections;
    // A reset instead of a farewell: no TIME_WAIT, so that ports do not run out.
    const linger reset = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    open_sockets.push_back(fd);
    if (open_sockets.size() >= static_cast<size_t>(options.connections)) {
      close(open_sockets.front());
      open_sockets.erase(open_sockets.begin());
    }
  }
  for (const int fd : open_sockets) close(fd);
  print_result({{"program", "pk_tcp connect"},
                {"wall_ns", now_ns() - start},
                {"connections", connections},
                {"errors", errors}});
  return 0;
}

}  // namespace pkprof::workload
