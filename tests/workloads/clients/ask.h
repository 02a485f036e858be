// SPDX-License-Identifier: Apache-2.0
// What clients ask of pk_answer, and how both are reached.
#pragma once

#include <cstdint>
#include <string>

#include "args/arg_parser.h"

namespace pkprof::workload {

// A request: so many microseconds of CPU time are wanted. The answer is the same bytes.
struct Ask {
  uint32_t cost_us = 0;
  int32_t client = 0;  // its pid
};

// A TCP or UDP port, or a Unix socket. Names follow an option's name: --to, --upstream.
struct Place {
  std::string address = "127.0.0.1";
  int port = 0;
  std::string path;
  bool datagrams = false;

  [[nodiscard]] int connect() const;  // tries until somebody listens there
  [[nodiscard]] int listen() const;
};

// All of it, or false: the other end is gone.
bool read_all(int fd, Ask& to);
bool write_all(int fd, const Ask& from);

// What was done for each client, in memory that processes share and, where there is a path, others
// read as a file: entries of two 64-bit numbers, its pid and how much.
class Truth {
 public:
  explicit Truth(const std::string& path);
  void add(int client, uint64_t amount) const;

 private:
  struct Client;
  Client* clients_;
};

}  // namespace pkprof::workload
