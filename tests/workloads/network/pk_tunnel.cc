// SPDX-License-Identifier: Apache-2.0
// A process that others' packets go through, as a VPN's or a virtual machine's: what one network
// namespace sends into its tun device, it hands to the kernel in the other's, and back. Whoever
// starts it gives the devices, "tun0" at each end, their addresses.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "workload.h"

namespace {

using namespace pkprof::workload;

// A device is in the namespace of whoever opened its file.
int make_device(const std::string& ns) {
  const int where = open(ns.c_str(), O_RDONLY | O_CLOEXEC);
  if (where < 0 || setns(where, CLONE_NEWNET) != 0) die(ns);
  close(where);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) die("/dev/net/tun");
  ifreq request = {};
  std::strcpy(request.ifr_name, "tun0");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(fd, TUNSETIFF, &request) != 0) die("TUNSETIFF");
  return fd;
}

// Takes packets from one end to the other until there are none, or it was the other's turn long
// ago. A packet that a device has no room for, or that is down, is lost, as on a wire.
uint64_t carry(int from, int to) {
  static std::array<char, 65536> packet;
  uint64_t packets = 0;
  for (; packets < 64; ++packets) {
    const ssize_t n = read(from, packet.data(), packet.size());
    if (n <= 0) break;
    (void)!write(to, packet.data(), static_cast<size_t>(n));
  }
  return packets;
}

int run(int argc, char** argv) {
  ArgParser app("A tunnel between two network namespaces.");
  Common common;
  std::string one;
  std::string other;
  common.add_to(app);
  app.add("--from", one, "a network namespace, by its file").required();
  app.add("--to", other, "another").required();
  if (const auto end = app.parse(argc, argv)) return *end;

  std::array<pollfd, 2> ends = {{{make_device(one), POLLIN, 0}, {make_device(other), POLLIN, 0}}};
  begin(common);
  say_ready();
  const uint64_t start = now_ns();
  uint64_t packets = 0;
  while (!stopped()) {
    if (poll(ends.data(), ends.size(), -1) < 0) {
      if (errno != EINTR) die("poll");
      continue;
    }
    packets += carry(ends[0].fd, ends[1].fd) + carry(ends[1].fd, ends[0].fd);
  }
  print_result({{"program", "pk_tunnel"}, {"wall_ns", now_ns() - start}, {"packets", packets}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(run, argc, argv);
}
