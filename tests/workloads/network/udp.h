// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload.h"

namespace pkprof::workload {

struct UdpSend {
  Common common;
  std::string to;
  std::string multicast;
  std::string device;
  std::vector<uint16_t> ports;
  std::vector<int> ratio;  // empty: one packet to each port in turn
  int size = 64;           // bytes
  double pps = 0;          // 0: no limit
  uint64_t count = 0;      // 0: no limit
  bool connected = false;
};

struct UdpRecv {
  Common common;
  std::string bind = "::";
  uint16_t port = 0;
  std::string mode = "block";
  std::string call = "recvfrom";
  std::string multicast;
  std::string device;
  int rcvbuf = 0;  // bytes; 0: the kernel's default
  uint64_t work_us = 0;
  int prefork = 0;
  int reuseport = 0;
};

int udp_send(const UdpSend& options);
int udp_recv(const UdpRecv& options);

}  // namespace pkprof::workload
