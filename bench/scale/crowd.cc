// SPDX-License-Identifier: Apache-2.0
#include "crowd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/fd.h"

namespace pkprof::scale {
namespace {

constexpr uint32_t holders = 8;     // processes that hold the sockets
constexpr uint32_t ports = 40'000;  // of each address
constexpr uint16_t first_port = 10'000;
constexpr int64_t second = 1'000'000'000;

void sleep_until(int64_t ns) {
  const timespec t{ns / second, ns % second};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * second + t.tv_nsec;
}

// A child that ends with its parent.
template <typename Body>
bool spawn(Body body) {
  const pid_t pid = fork();
  if (pid != 0) return pid > 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  _exit(0);
}

[[noreturn]] void wake_each_second(uint32_t i, uint32_t count) {
  int64_t next = now() / second * second + second * i / count;
  for (;;) {
    next += second;
    sleep_until(next);
    for (int n = 0; n < 3000; ++n) asm volatile("");
  }
}

sockaddr_in address_of(uint32_t i) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x10000 + i / ports);
  address.sin_port = htons(static_cast<uint16_t>(first_port + i % ports));
  return address;
}

// Holds every one of the sockets [from, to) and takes what comes for them.
void hold(uint32_t from, uint32_t to, int ready) {
  const Fd all(epoll_create1(EPOLL_CLOEXEC));
  for (uint32_t i = from; i < to; ++i) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const sockaddr_in address = address_of(i);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ||
        epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event))
      _exit(1);
  }
  if (write(ready, "", 1) != 1) _exit(1);
  for (;;) {
    epoll_event events[64];
    const int n = epoll_wait(all.get(), events, 64, -1);
    char packet[64];
    for (int i = 0; i < n; ++i) (void)!recv(events[i].data.fd, packet, sizeof(packet), 0);
  }
}

[[noreturn]] void send_to_any(uint32_t count, uint32_t packets) {
  const Fd fd(socket(AF_INET, SOCK_DGRAM, 0));
  if (!fd.valid()) _exit(1);
  uint64_t random = 1;
  int64_t next = now();
  for (;;) {
    next += second / packets;
    sleep_until(next);
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const sockaddr_in to = address_of(static_cast<uint32_t>((random >> 33) % count));
    (void)!sendto(fd.get(), "packet", 6, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }
}

}  // namespace

// `members` starts them, in the group's leader, and writes a byte for each that is to be waited
// for; it returns how many these are, 0 when one could not be started.
template <typename Start>
Result<Crowd> Crowd::start(Start members) {
  // Whom the leader leaves behind is ours to wait for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return fail_errno("pipe");
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t leader = fork();
  if (leader < 0) return fail_errno("fork");
  if (leader == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!members(to.get())) _exit(1);
    to = Fd();
    for (;;) pause();
  }
  setpgid(leader, leader);
  Crowd crowd(leader);
  to = Fd();
  char byte = 0;
  if (read(from.get(), &byte, 1) != 1)
    return fail("the processes could not be started: see ulimit -u, -n and pids.max");
  return crowd;
}

Result<Crowd> Crowd::processes(uint32_t count) {
  return start([count](int ready) {
    for (uint32_t i = 0; i < count; ++i)
      if (!spawn([&] { wake_each_second(i, count); })) return false;
    return write(ready, "", 1) == 1;
  });
}

Result<Crowd> Crowd::sockets(uint32_t count, uint32_t packets) {
  // Each holder has its part of them, and some files of its own.
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, count / holders + 100);
  files.rlim_max = std::max(files.rlim_max, files.rlim_cur);
  if (setrlimit(RLIMIT_NOFILE, &files)) return fail_errno("raising the limit of open files");
  return start([count, packets](int ready) {
    int ends[2];
    if (pipe(ends)) return false;
    for (uint32_t i = 0; i < holders; ++i)
      if (!spawn([&] { hold(count * i / holders, count * (i + 1) / holders, ends[1]); }))
        return false;
    close(ends[1]);
    char byte = 0;
    for (uint32_t i = 0; i < holders; ++i)
      if (read(ends[0], &byte, 1) != 1) return false;
    if (packets && !spawn([&] { send_to_any(count, packets); })) return false;
    return write(ready, "", 1) == 1;
  });
}

Crowd::Crowd(Crowd&& o) noexcept : group_(std::exchange(o.group_, 0)) {}

Crowd::~Crowd() {
  if (!group_) return;
  kill(-group_, SIGKILL);
  while (waitpid(-group_, nullptr, 0) > 0) {
  }
}

}  // namespace pkprof::scale
