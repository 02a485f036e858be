// SPDX-License-Identifier: Apache-2.0
// One page, shown to whoever has its address: on loopback only, with a token in it that nobody can
// guess. Other users of the machine can connect to its loopback; without the token they get
// nothing. Nor does a web page that has its own name point to 127.0.0.1: requests must be for a
// loopback name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace pkprof {

struct Served {
  std::function<Result<std::string>()> page;  // made anew for each request
  uint16_t port = 0;                          // 0: any that is free
  // Called once it can be asked for.
  std::function<void(const std::string& url, uint16_t port)> ready;
};

// Until SIGINT or SIGTERM.
[[nodiscard]] Result<> serve(const Served& served);

}  // namespace pkprof
