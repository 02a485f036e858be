// SPDX-License-Identifier: Apache-2.0
// Receivers beside the transport layer: a packet socket that sees every frame (whose work is that,
// the sniffer's or the receiver's?), and raw ICMP, with a pinger to feed it.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "address.h"
#include "workload.h"

namespace {

using namespace pkprof::workload;

int packet_socket(const std::string& device) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (fd < 0) die("packet socket");
  if (!device.empty()) {
    sockaddr_ll address = {};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(device.c_str()));
    if (address.sll_ifindex == 0) die("device \"" + device + "\"");
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind");
  }
  return fd;
}

int receive(const char* program, int fd) {
  say_ready();
  const uint64_t start = now_ns();
  std::array<char, 65536> buffer;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  while (!stopped()) {
    const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
    if (n >= 0) {
      ++packets;
      bytes += static_cast<uint64_t>(n);
    } else if (errno != EINTR) {
      die("receiving");
    }
  }
  print_result({{"program", program},
                {"wall_ns", now_ns() - start},
                {"packets", packets},
                {"bytes", bytes}});
  return 0;
}

int icmp_protocol(bool v6) {
  return v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP};
}

uint16_t checksum(const void* data, size_t size) {
  const auto* words = static_cast<const uint16_t*>(data);
  uint32_t sum = 0;
  for (size_t i = 0; i < size / 2; ++i) sum += words[i];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// Echo requests at a rate; the replies stay in the socket's queue unread.
int ping(const std::string& to, double pps) {
  const Address address = parse_address(to, 0);
  const bool v6 = address.family() == AF_INET6;
  const int fd = socket(address.family(), SOCK_RAW | SOCK_CLOEXEC, icmp_protocol(v6));
  if (fd < 0) die("raw socket");
  say_ready();
  const uint64_t start = now_ns();
  const auto interval = pps > 0 ? static_cast<uint64_t>(1e9 / pps) : 0;
  uint64_t sent = 0;
  uint64_t errors = 0;
  for (uint64_t next = start; !stopped(); next += interval) {
    icmphdr header = {};  // the same layout in ICMPv6, whose checksum the kernel fills in
    header.type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
    header.un.echo.id = htons(static_cast<uint16_t>(getpid()));
    header.un.echo.sequence = htons(static_cast<uint16_t>(sent));
    if (!v6) header.checksum = checksum(&header, sizeof header);
    if (sendto(fd, &header, sizeof header, 0, address.get(), address.length) > 0) {
      ++sent;
    } else {
      errors += errno != EINTR;
    }
    if (interval > 0) sleep_until_ns(next + interval);
  }
  print_result({{"program", "pk_raw ping"},
                {"wall_ns", now_ns() - start},
                {"packets", sent},
                {"errors", errors}});
  return 0;
}

int run(int argc, char** argv) {
  ArgParser app("Packet and raw sockets.");
  app.show_defaults();
  app.require_subcommand();
  Common common;
  std::string device;
  std::string to;
  double pps = 100;
  bool v6 = false;
  auto sniff = app.subcommand("sniff", "receive every frame on a packet socket");
  sniff.add("--device", device, "only this network device");
  auto icmp = app.subcommand("icmp", "receive ICMP on a raw socket");
  icmp.add("-6,--ipv6", v6, "ICMPv6");
  auto pinger = app.subcommand("ping", "send echo requests");
  pinger.add("--to", to, "address").required();
  pinger.add("--pps", pps, "packets a second; 0: as many as it can");
  for (const auto& sub : {sniff, icmp, pinger}) common.add_to(sub);
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);

  if (sniff.used()) return receive("pk_raw sniff", packet_socket(device));
  if (pinger.used()) return ping(to, pps);
  const int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC, icmp_protocol(v6));
  if (fd < 0) die("raw socket");
  return receive("pk_raw icmp", fd);
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
