// SPDX-License-Identifier: Apache-2.0
// The perf maps of all processes. One budget of memory is for all of them together, and what does
// not fit is left out, with a warning. A file is read once, however many processes have it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "symbol/elf/file_access.h"
#include "symbol/perf_map.h"
#include "symbol/reader_thread.h"
#include "symbol/warnings.h"

namespace pkprof {

class PerfMaps {
 public:
  // Where a process's file may be: the first of these names that is there and belongs to one of
  // these.
  struct Place {
    std::shared_ptr<RootDir> root;
    std::vector<std::string> paths;
    std::vector<uid_t> owners;
  };
  // A file as it was when it was read last. For all processes that have it.
  struct File {
    FileStamp stamp;
    PerfMap map;
  };

  PerfMaps(uint64_t memory_limit, ReaderThread& reader, Warnings& warnings)
      : memory_limit_(memory_limit), reader_(reader), warnings_(warnings) {}

  // The file there, read anew if it has changed and that was not done too recently; nullptr when
  // there is none.
  std::shared_ptr<const File> look(const Place& place);

 private:
  using Clock = std::chrono::steady_clock;
  struct Found {
    std::string path;
    FileStamp stamp;
  };
  struct Opened;

  static std::optional<Opened> open(const Place& place);
  using Key = std::pair<RootDir::Identity, std::string>;

  static Key key_of(const Place& place) { return {place.root->identity(), place.paths.front()}; }
  // What the job returns; nothing where the file does not answer, now and ever after.
  template <typename Job>
  std::invoke_result_t<Job&> ask(const Place& place, Job job) {
    if (silent_.contains(key_of(place))) return std::nullopt;
    if (auto answer = reader_.run(std::move(job))) return std::move(*answer);
    silent_.insert(key_of(place));
    warnings_.add(place.paths.front() + ": does not answer; its functions have no names");
    return std::nullopt;
  }
  void read(const Place& place, const Found& found, File& file);
  [[nodiscard]] uint64_t memory_used() const;

  uint64_t memory_limit_;
  ReaderThread& reader_;
  Warnings& warnings_;
  // By device and inode.
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<File>> files_;
  std::set<Key> silent_;
  Clock::time_point next_rereading_;
};

}  // namespace pkprof
