// SPDX-License-Identifier: Apache-2.0
// Makes tables of the files that samples lead to, each once, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbol/reader_thread.h"
#include "unwind/unwind_table.h"

namespace pkprof {

// A file with code, as a process has it mapped.
struct CodeFile {
  uint64_t number = 0;  // by which the kernel side knows it
  uint32_t pid = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t inode = 0;  // 0: it is the vdso
  std::string path;    // as the process sees it; "" if that is not known
};

class TableMaker {
 public:
  struct Sink {
    std::function<Result<>(uint64_t file, const UnwindTable&)> put;
    std::function<void(uint64_t file)> remove;
    std::function<uint64_t(uint64_t file)> used;  // ktime of the last search, ns; 0: none yet
  };
  struct Counts {
    uint64_t files = 0;       // that have tables,
    uint64_t bytes = 0;       // of so many together
    uint64_t unreadable = 0;  // files that could not be read, or are damaged
    uint64_t removed = 0;     // tables that made room for others
    uint64_t refused = 0;     // that the kernel had no room for
  };

  // The tables together have no more bytes than that; those searched least lately
  // make room.
  TableMaker(Sink sink, uint64_t most_bytes);
  ~TableMaker();
  TableMaker(const TableMaker&) = delete;
  TableMaker& operator=(const TableMaker&) = delete;

  // What was wanted before is passed over. A file without a number gets no table in the kernel yet,
  // but is read, so that it has one soon.
  void want(CodeFile file);
  // The table itself; nullptr: the file is not to be had. May be called while others are made.
  using Table = std::shared_ptr<const UnwindTable>;
  [[nodiscard]] Table get(const CodeFile& file) { return read(file, reader_of_get_); }
  [[nodiscard]] Counts counts() const;

 private:
  void work();
  bool make_if_it_can(const CodeFile& file);
  void make(const CodeFile& file);
  Table read(const CodeFile& file, ReaderThread& reader);
  void put(uint64_t number, Table table);
  void make_room(uint64_t bytes);

  Sink sink_;
  const uint64_t most_bytes_;
  ReaderThread reader_of_get_;
  ReaderThread reader_;  // of the thread alone, as are those below
  struct Made {
    uint64_t number;
    uint64_t bytes;
    uint64_t used;  // ktime, as far as was asked
  };
  std::vector<Made> made_;
  std::deque<std::future<void>> puts_;  // that are being waited for

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CodeFile> wanted_;
  std::unordered_set<uint64_t> met_;
  std::set<std::pair<uint64_t, std::string>> met_without_number_;  // by inode and path
  struct Cache;
  std::shared_ptr<Cache> cache_;  // also of readers that were given up
  Counts counts_;
  bool ended_ = false;
  std::thread thread_;  // begins when the rest is there
};

}  // namespace pkprof
