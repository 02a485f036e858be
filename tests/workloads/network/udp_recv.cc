// SPDX-License-Identifier: Apache-2.0
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>

#include "address.h"
#include "udp.h"

namespace pkprof::workload {
namespace {

constexpr size_t kBatch = 32;
constexpr size_t kBuffer = 65536;

// Reads in the manner asked for. Returns the packets read, or -1 with errno.
class Reader {
 public:
  Reader(int fd, const std::string& call) : fd_(fd) {
    if (call == "recvmsg") call_ = Call::kRecvmsg;
    if (call == "recvmmsg") call_ = Call::kRecvmmsg;
    if (call == "read") call_ = Call::kRead;
    buffers_.resize(call_ == Call::kRecvmmsg ? kBatch : 1, std::vector<char>(kBuffer));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      vectors_[i] = {buffers_[i].data(), kBuffer};
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  int read(int flags, uint64_t& bytes) {
    if (call_ == Call::kRecvmmsg) {
      const int n = recvmmsg(fd_, messages_.data(), kBatch, flags | MSG_WAITFORONE, nullptr);
      for (int i = 0; i < n; ++i) bytes += messages_[static_cast<size_t>(i)].msg_len;
      return n;
    }
    ssize_t n = 0;
    if (call_ == Call::kRecvmsg) {
      n = recvmsg(fd_, &messages_[0].msg_hdr, flags);
    } else if (call_ == Call::kRead) {
      n = ::read(fd_, buffers_[0].data(), kBuffer);
    } else {
      n = recvfrom(fd_, buffers_[0].data(), kBuffer, flags, nullptr, nullptr);
    }
    if (n < 0) return -1;
    bytes += static_cast<uint64_t>(n);
    return 1;
  }

 private:
  enum class Call : uint8_t { kRecvfrom, kRecvmsg, kRecvmmsg, kRead };

  int fd_;
  Call call_ = Call::kRecvfrom;
  std::vector<std::vector<char>> buffers_;
  std::array<iovec, kBatch> vectors_ = {};
  std::array<mmsghdr, kBatch> messages_ = {};
};

int receiving_socket(const UdpRecv& options, bool reuseport) {
  Address local = parse_address(options.bind, options.port);
  if (!options.multicast.empty()) local = parse_address(options.multicast, options.port);
  const bool nonblocking = options.mode != "block";
  const int fd = bound_socket(local, SOCK_DGRAM | (nonblocking ? SOCK_NONBLOCK : 0), reuseport);
  if (!options.multicast.empty()) join_multicast(fd, local, options.device);
  if (options.rcvbuf > 0 &&
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &options.rcvbuf, sizeof options.rcvbuf) != 0) {
    die("SO_RCVBUFFORCE");
  }
  return fd;
}

uint64_t drops_of(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> info = {};
  socklen_t length = sizeof info;
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

void wait_for_packet(const UdpRecv& options, int fd, int epoll_fd) {
  if (options.mode == "poll") {
    pollfd p = {fd, POLLIN, 0};
    poll(&p, 1, -1);
  } else if (options.mode == "epoll") {
    epoll_event event = {};
    epoll_wait(epoll_fd, &event, 1, -1);
  } else if (options.mode == "nap") {
    usleep(5000);  // away from the socket: nobody to wake, no lock to contend for
  }
}

void receive(const UdpRecv& options, int fd, WorkerStats& stats) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  // Only if asked for: a socket that is watched calls back for every packet.
  if (options.mode == "epoll") epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
  Reader reader(fd, options.call);
  while (!stopped()) {
    const int n = reader.read(0, stats.bytes);
    if (n > 0) {
      stats.operations += static_cast<uint64_t>(n);
      if (options.work_us > 0) burn_us(options.work_us * static_cast<uint64_t>(n));
    } else if (errno == EAGAIN) {
      wait_for_packet(options, fd, epoll_fd);
    } else if (errno != EINTR && errno != ECONNREFUSED) {
      die("receiving");
    }
  }
  close(epoll_fd);
}

}  // namespace

int udp_recv(const UdpRecv& options) {
  begin(options.common);
  // Sharing one socket: the first process holds it too, as a server's master does. A socket each:
  // every worker opens its own, so that each has exactly one holder, and the last one says ready;
  // a SO_REUSEPORT group that is still growing would share the packets unevenly.
  const bool own_sockets = options.reuseport > 0;
  const int shared = own_sockets ? -1 : receiving_socket(options, false);
  void* memory = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("shared memory");
  auto* opened = new (memory) std::atomic<int>(0);
  if (!own_sockets) say_ready();

  const uint64_t start = now_ns();
  const auto stats = run_workers(options.prefork + options.reuseport, [&](int, WorkerStats& mine) {
    const int fd = own_sockets ? receiving_socket(options, true) : shared;
    if (own_sockets && ++*opened == options.reuseport) say_ready();
    receive(options, fd, mine);
    if (own_sockets) mine.dropped = drops_of(fd);
  });
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t dropped = own_sockets ? 0 : drops_of(shared);
  for (const auto& s : stats) {
    packets += s.operations;
    bytes += s.bytes;
    dropped += s.dropped;
  }
  print_result({{"program", "pk_udp recv"},
                {"wall_ns", now_ns() - start},
                {"packets", packets},
                {"bytes", bytes},
                {"dropped", dropped},
                {"workers", to_json(stats)}});
  return 0;
}

}  // namespace pkprof::workload
