// SPDX-License-Identifier: Apache-2.0
// Recordings of a machine with few and with many: processes, sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof::scale {

struct LiveOptions {
  std::string bin;  // where pkprof is
  uint32_t processes = 10'000;
  uint32_t sockets = 100'000;
  uint32_t few = 100;                                   // to compare with
  uint32_t packets = 2'000;                             // a second, to the sockets
  std::vector<uint32_t> rates{1'000, 10'000, 100'000};  // the same between two namespaces
  int seconds = 5;
  int rounds = 3;
};

// Each prints a table. Medians of the rounds, in which few and many take turns.
[[nodiscard]] Result<> record_processes(const LiveOptions& options);
[[nodiscard]] Result<> record_sockets(const LiveOptions& options);

}  // namespace pkprof::scale
