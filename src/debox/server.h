// SPDX-License-Identifier: Apache-2.0
// Serves programs that use the library (lib/debox): whoever asks gets the records of its own
// threads as memory that it can read and not write, and names for places in the kernel.
//
// What a client says is believed of itself alone: who it is the kernel tells.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "debox/side.h"

namespace pkprof {

// An abstract socket with its name, so that nobody else can take that. Nobody listens yet: whoever
// asks is refused, and does not wait.
struct DeboxSocket {
  // For a command, which is told the name: one that nobody knows before.
  static Result<DeboxSocket> for_command();
  // For a process that is to find it, in whatever container it is.
  static Result<DeboxSocket> beside(uint32_t pid);

  std::string name;
  Fd fd;
};

class DeboxServer {
 public:
  struct Options {
    // Whom to serve; others are refused.
    std::function<bool(uint32_t pid)> serves;
    // What is wanted of threads that ask for nothing, and of what they begin (enum db_wants).
    uint32_t wants = 0;
    uint32_t begets = 0;
    bool events_are_watched = false;  // page faults of these threads are noted in any case
    std::function<std::string(uint32_t)> place_name;
  };
  // `side` is to live longer.
  static Result<DeboxServer> open(DeboxSide& side, const DeboxSocket& socket, Options options);
  DeboxServer(DeboxServer&&) noexcept;
  DeboxServer& operator=(DeboxServer&&) noexcept;
  ~DeboxServer();

  [[nodiscard]] std::vector<int> poll_fds() const;
  // Some of what is there to be done, without waiting, so that whoever asks without end holds up
  // neither others nor us. Returns whether there is more that poll() does not tell.
  bool serve();
  // Threads that mark their calls now, or did: they are in no table.
  [[nodiscard]] uint64_t marked() const;
  // Times that a process asked while there was no room for one more, and that a thread did.
  [[nodiscard]] uint64_t refused() const;
  [[nodiscard]] uint64_t threads_refused() const;

 private:
  struct Impl;
  explicit DeboxServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
