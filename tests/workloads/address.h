// SPDX-License-Identifier: Apache-2.0
// IPv4 and IPv6 addresses behind one type.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace pkprof::workload {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Parses a numeric address ("10.0.0.1", "fe80::1%veth0"). Exits with a message if it is none.
[[nodiscard]] Address parse_address(const std::string& text, uint16_t port);

// A bound socket of the type; "reuseport" sets SO_REUSEPORT. Exits with a message on failure.
[[nodiscard]] int bound_socket(const Address& address, int type, bool reuseport);

// Sends multicast out of the device; joins the group on it. Exit with a message on failure.
void send_multicast_from(int fd, int family, const std::string& device);
void join_multicast(int fd, const Address& group, const std::string& device);

}  // namespace pkprof::workload
