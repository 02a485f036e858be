// SPDX-License-Identifier: Apache-2.0
// The programs that use the library: the command with what it begins, and those that were attached
// to. Each finds its server by a socket of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "debox/server.h"

namespace pkprof {

class DeboxPrograms {
 public:
  // Makes the sockets. Until a program is served, it is refused and does not wait.
  static Result<DeboxPrograms> bind(bool with_command, std::vector<uint32_t> attached);
  // What the command is told.
  [[nodiscard]] const std::string& command_socket() const { return command_->name; }

  // `side` is to live longer.
  Result<> serve_command(DeboxSide& side, DeboxServer::Options options);
  // Each of them for itself alone. Fails where one has ended.
  Result<> serve_attached(DeboxSide& side, DeboxServer::Options options);

  [[nodiscard]] std::vector<int> poll_fds() const;
  // As DeboxServer::serve(), of all of them.
  bool serve();
  [[nodiscard]] const std::vector<DeboxServer>& servers() const { return servers_; }

 private:
  Result<> serve(DeboxSide& side, const DeboxSocket& socket, DeboxServer::Options options);

  std::optional<DeboxSocket> command_;
  std::vector<uint32_t> pids_;         // of those that were attached to,
  std::vector<DeboxSocket> attached_;  // in their order
  std::vector<DeboxServer> servers_;
};

}  // namespace pkprof
