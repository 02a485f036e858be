// SPDX-License-Identifier: Apache-2.0
#include "debox/programs.h"

#include <signal.h>

#include <utility>

namespace pkprof {

Result<DeboxPrograms> DeboxPrograms::bind(bool with_command, std::vector<uint32_t> attached) {
  DeboxPrograms programs;
  if (with_command) {
    auto socket = DeboxSocket::for_command();
    if (!socket) return std::unexpected(socket.error());
    programs.command_.emplace(std::move(*socket));
  }
  for (const uint32_t pid : attached) {
    auto socket = DeboxSocket::beside(pid);
    if (!socket) return std::unexpected(socket.error());
    programs.attached_.push_back(std::move(*socket));
  }
  programs.pids_ = std::move(attached);
  return programs;
}

Result<> DeboxPrograms::serve(DeboxSide& side, const DeboxSocket& socket,
                              DeboxServer::Options options) {
  auto server = DeboxServer::open(side, socket, std::move(options));
  if (!server) return std::unexpected(server.error());
  servers_.push_back(std::move(*server));
  return {};
}

Result<> DeboxPrograms::serve_command(DeboxSide& side, DeboxServer::Options options) {
  return serve(side, *command_, std::move(options));
}

Result<> DeboxPrograms::serve_attached(DeboxSide& side, DeboxServer::Options options) {
  for (size_t i = 0; i < attached_.size(); ++i) {
    const uint32_t pid = pids_[i];
    if (kill(static_cast<pid_t>(pid), 0)) return fail_errno("process " + std::to_string(pid));
    options.serves = [pid](uint32_t who) { return who == pid; };
    if (auto r = serve(side, attached_[i], options); !r) return r;
  }
  return {};
}

std::vector<int> DeboxPrograms::poll_fds() const {
  std::vector<int> all;
  for (const DeboxServer& server : servers_) {
    const std::vector<int> fds = server.poll_fds();
    all.insert(all.end(), fds.begin(), fds.end());
  }
  return all;
}

bool DeboxPrograms::serve() {
  bool more = false;
  for (DeboxServer& server : servers_) more |= server.serve();
  return more;
}

}  // namespace pkprof
