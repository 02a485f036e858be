// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <random>

#include "address.h"
#include "udp.h"

namespace pkprof::workload {
namespace {

struct Target {
  Address address;
  int fd = -1;
  uint64_t packets = 0;
};

int sending_socket(const UdpSend& options, const Address& address) {
  const int fd = socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  if (!options.multicast.empty() && !options.device.empty()) {
    send_multicast_from(fd, address.family(), options.device);
  }
  if (options.connected && connect(fd, address.get(), address.length) != 0) die("connect");
  return fd;
}

}  // namespace

int udp_send(const UdpSend& options) {
  begin(options.common);
  std::vector<Target> targets;
  for (const uint16_t port : options.ports) {
    Target target;
    target.address =
        parse_address(options.multicast.empty() ? options.to : options.multicast, port);
    // One socket for all where that can be: a packet of each target costs the sender the same.
    target.fd = targets.empty() || options.connected ? sending_socket(options, target.address)
                                                     : targets.front().fd;
    targets.push_back(target);
  }
  // One round: {0, 0, 0, 1} for 3:1. Its order changes, or else the same target's packets might
  // always be the first of a burst, and pay for the interrupt that the others share.
  std::vector<size_t> round;
  for (size_t i = 0; i < targets.size(); ++i) {
    round.insert(round.end(), static_cast<size_t>(options.ratio.empty() ? 1 : options.ratio[i]), i);
  }
  if (round.empty()) die("--ratio has only zeros", false);
  std::mt19937 random(1);
  say_ready();

  const std::vector<char> payload(static_cast<size_t>(options.size), 'x');
  const auto interval = options.pps > 0 ? static_cast<uint64_t>(1e9 / options.pps) : 0;
  const uint64_t start = now_ns();
  uint64_t next = start;
  uint64_t sent = 0;
  uint64_t errors = 0;
  for (size_t turn = 0; !stopped() && (options.count == 0 || sent < options.count); ++turn) {
    if (turn % round.size() == 0) std::ranges::shuffle(round, random);
    Target& target = targets[round[turn % round.size()]];
    const ssize_t n = options.connected ? send(target.fd, payload.data(), payload.size(), 0)
                                        : sendto(target.fd, payload.data(), payload.size(), 0,
                                                 target.address.get(), target.address.length);
    if (n >= 0) {
      ++sent;
      ++target.packets;
    } else if (errno != EINTR) {
      ++errors;  // ECONNREFUSED from a closed port, ENOBUFS from a full queue: go on
    }
    if (interval > 0) {
      // Late by more than a tenth of a second: forget it rather than send a burst.
      next = std::max(next + interval, now_ns() - 100'000'000);
      if (next > now_ns()) sleep_until_ns(next);
    }
  }
  nlohmann::ordered_json ports;
  for (size_t i = 0; i < targets.size(); ++i) {
    ports[std::to_string(options.ports[i])] = targets[i].packets;
  }
  print_result({{"program", "pk_udp send"},
                {"wall_ns", now_ns() - start},
                {"packets", sent},
                {"errors", errors},
                {"ports", ports}});
  return 0;
}

}  // namespace pkprof::workload
