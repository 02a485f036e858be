// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "workload.h"

namespace pkprof::workload {

struct TcpServe {
  Common common;
  std::string bind = "::";
  uint16_t port = 0;
  std::string mode = "sink";  // sink, echo
  bool splice = false;
  int prefork = 0;
  uint64_t work_us = 0;    // CPU time to burn for each read
  uint64_t accept_ms = 0;  // to sleep after each connection accepted: the others wait
};

// Options of all the clients.
struct TcpClient {
  Common common;
  std::string to;
  uint16_t port = 0;
  int connections = 1;
  int size = 0;            // bytes of a write, or of a request
  double rate = 0;         // bytes, requests or connections a second; 0: no limit
  bool splice = false;     // stream
  bool sendfile = false;   // stream
  uint64_t pacing = 0;     // stream: SO_MAX_PACING_RATE in bytes a second; 0: none
  std::string congestion;  // TCP_CONGESTION
};

int tcp_serve(const TcpServe& options);
int tcp_stream(const TcpClient& options);
int tcp_rr(const TcpClient& options);
int tcp_connect(const TcpClient& options);

}  // namespace pkprof::workload
