// SPDX-License-Identifier: Apache-2.0
// Debug files from servers, by elfutils' client (libdebuginfod), which keeps them in its cache.
// The library is opened when it is needed: where it is not installed there are no such files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

class Debuginfod {
 public:
  // Called while a file is on its way, with bytes (0: not known); false gives it up.
  using Progress = std::function<bool(uint64_t got, uint64_t all)>;

  // Whether DEBUGINFOD_URLS names servers.
  [[nodiscard]] static bool is_wanted();
  static Result<Debuginfod> open(Progress progress);

  // The debug file of the program with that build-id (lower-case hex).
  [[nodiscard]] Result<Fd> debug_file(const std::string& build_id);

 private:
  struct Client;
  explicit Debuginfod(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  std::shared_ptr<Client> client_;
};

}  // namespace pkprof
