// SPDX-License-Identifier: Apache-2.0
// One text for whoever asks, under /metrics: what Prometheus comes for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace pkprof {

class FiguresServer {
 public:
  // `text` is made anew for each request, in a thread of the server's own.
  static Result<std::unique_ptr<FiguresServer>> start(const std::string& address, uint16_t port,
                                                      std::function<std::string()> text);
  virtual ~FiguresServer() = default;
  [[nodiscard]] virtual uint16_t port() const = 0;
};

}  // namespace pkprof
