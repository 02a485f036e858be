// SPDX-License-Identifier: Apache-2.0
// Waits for answers, over pipes, over a connection and by datagrams.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "wait/wait.h"

namespace pkprof::wait {
namespace {

// Descriptors: to the child that answers, and from it.
Said ask(int to, int from, pid_t child) {
  Said said{.others = {child}};
  for (const uint64_t end = now_ns() + lasts; now_ns() < end;) {
    char byte = 1;
    if (write(to, &byte, 1) != 1) give_up("asking");
    said.waited_ns += blocked_time_of([&] { (void)!read(from, &byte, 1); });
    work(ms / 2);
  }
  return said;
}

// Works for 2 ms for each byte.
void answer(int from, int to) {
  for (char byte; read(from, &byte, 1) == 1;) {
    work(2 * ms);
    if (write(to, &byte, 1) != 1) break;
  }
}

// Waits by epoll, as servers do.
void serve(int listener) {
  const int one = accept(listener, nullptr, nullptr);
  const int poll = epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(poll, EPOLL_CTL_ADD, one, &event);
  while (epoll_wait(poll, &event, 1, -1) == 1) {
    char byte;
    if (read(one, &byte, 1) != 1) break;
    work(2 * ms);
    if (write(one, &byte, 1) != 1) break;
  }
}

sockaddr_in loopback(uint32_t host, uint16_t port) {
  return {.sin_family = AF_INET,
          .sin_port = htons(port),
          .sin_addr = {htonl(INADDR_LOOPBACK + host)},
          .sin_zero = {}};
}

// At a port of the caller's choice, as servers are: a free one, which the kernel names.
int bound_to(uint32_t host, sockaddr_in& address) {
  for (const bool is_named : {false, true}) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof address;
    if (!is_named) address = loopback(host, 0);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd, at, length) || getsockname(fd, at, &length)) give_up("bind");
    if (is_named) return fd;
    close(fd);
  }
  return -1;
}

}  // namespace

// Whose datagram it is, is told by where it comes from: 127.0.0.3, the bystander's from 127.0.0.5.
Said udp_scenario(const Arguments&) {
  sockaddr_in address{};
  const int server = bound_to(is_bystander() ? 4 : 2, address);
  const pid_t child = in_child([&] {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    auto* const at = reinterpret_cast<sockaddr*>(&from);
    for (char byte; recvfrom(server, &byte, 1, 0, at, &length) == 1; length = sizeof from) {
      work(2 * ms);
      if (sendto(server, &byte, 1, 0, at, length) != 1) break;
    }
  });
  const int one = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (connect(one, reinterpret_cast<sockaddr*>(&address), sizeof address)) give_up("connect");
  Said said = ask(one, one, child);
  close(one);
  close(server);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return said;
}

Said pipe_scenario(const Arguments&) {
  int question[2], reply[2];
  if (pipe(question) || pipe(reply)) give_up("pipe");
  const pid_t child = in_child([&] {
    close(question[1]);
    close(reply[0]);
    answer(question[0], reply[1]);
  });
  close(question[0]);
  close(reply[1]);
  Said said = ask(question[1], reply[0], child);
  close(question[1]);
  close(reply[0]);
  waitpid(child, nullptr, 0);
  return said;
}

Said tcp_scenario(const Arguments&) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, at, length) || listen(listener, 1) || getsockname(listener, at, &length))
    give_up("listen");
  const pid_t child = in_child([&] { serve(listener); });
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(one, at, length)) give_up("connect");
  Said said = ask(one, one, child);
  close(one);
  close(listener);
  waitpid(child, nullptr, 0);
  return said;
}

}  // namespace pkprof::wait
