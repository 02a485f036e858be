// SPDX-License-Identifier: Apache-2.0
// Cuts on disk that sinks have not taken yet: pprof files, the oldest first, in a directory for
// each sink. A cut is written once and linked there, so that its bytes are on the disk once. A file
// has its name when all of it is there: whatever ends the agent, what is in the spool is whole.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pkprof {

class Spool {
 public:
  // `most_bytes`: that may wait for one sink.
  static Result<Spool> open(const std::string& directory, const std::vector<std::string>& sinks,
                            uint64_t most_bytes);
  Spool(Spool&&) noexcept;

  static constexpr std::string_view suffix = ".pb.gz";  // of its files

  // A profile's file, for every sink. Where there is no room the oldest make some; what has none
  // then is lost, and the sentence says why.
  Result<> add(uint64_t start_unix_ns, const std::string& boot, std::string_view file);

  struct Cut {
    std::string path;
    std::string boot;
    uint64_t start_unix_ns = 0;
  };
  // The oldest that waits for a sink.
  [[nodiscard]] std::optional<Cut> oldest(const std::string& sink) const;
  // It has been taken, or never will be.
  void remove(const std::string& sink, const std::string& path);

  struct Depth {
    uint64_t cuts = 0;
    uint64_t bytes = 0;
    uint64_t dropped = 0;  // for want of room, since it was opened
  };
  [[nodiscard]] Depth depth(const std::string& sink) const;
  // Of sinks that there are no more: their directories, which nobody empties.
  [[nodiscard]] std::vector<std::string> forsaken() const;

 private:
  // By name, which is by time.
  struct Queue {
    std::map<std::string, uint64_t> files;  // bytes of each
    uint64_t bytes = 0;
    uint64_t dropped = 0;
  };

  Spool(std::string directory, uint64_t most_bytes)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}
  Result<> read(const std::string& sink);
  [[nodiscard]] std::string directory_of(const std::string& sink) const {
    return directory_ + "/" + sink;
  }
  bool drop_oldest();
  void drop(const std::string& sink, Queue& queue);

  std::string directory_;
  uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Queue> queues_;
};

}  // namespace pkprof
