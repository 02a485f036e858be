// SPDX-License-Identifier: Apache-2.0
#include "address.h"

#include <net/if.h>
#include <netdb.h>

#include <cstring>

#include "workload.h"

namespace pkprof::workload {
namespace {

int device_index(const std::string& device) {
  const unsigned index = if_nametoindex(device.c_str());
  if (index == 0) die("device \"" + device + "\"");
  return static_cast<int>(index);
}

}  // namespace

Address parse_address(const std::string& text, uint16_t port) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int rc = getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found);
      rc != 0) {
    die("address \"" + text + "\": " + gai_strerror(rc), false);
  }
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

int bound_socket(const Address& address, int type, bool reuseport) {
  const int fd = socket(address.family(), type | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (reuseport && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) {
    die("SO_REUSEPORT");
  }
  if (bind(fd, address.get(), address.length) != 0) die("bind");
  return fd;
}

void send_multicast_from(int fd, int family, const std::string& device) {
  const int index = device_index(device);
  int rc = 0;
  if (family == AF_INET6) {
    rc = setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
  } else {
    ip_mreqn request = {};
    request.imr_ifindex = index;
    rc = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
  }
  if (rc != 0) die("sending multicast from " + device);
}

void join_multicast(int fd, const Address& group, const std::string& device) {
  group_req request = {};
  request.gr_interface = static_cast<uint32_t>(device_index(device));
  std::memcpy(&request.gr_group, &group.storage, sizeof request.gr_group);
  const int level = group.family() == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  if (setsockopt(fd, level, MCAST_JOIN_GROUP, &request, sizeof request) != 0) {
    die("joining the multicast group on " + device);
  }
}

}  // namespace pkprof::workload
