// SPDX-License-Identifier: Apache-2.0
// A table of the kernel side's that is read while it is filled: there are two, and programs use
// one.
#pragma once

#include <array>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

class TablePair {
 public:
  TablePair() = default;

  struct Shape {
    const char* name;
    uint32_t key;    // bytes
    uint32_t value;  // bytes
    uint32_t entries;
  };
  static Result<TablePair> make(const Shape& shape);
  // What was pinned: the two, and the map whose only entry is the one that is in use.
  static Result<TablePair> open(std::array<Fd, 2> tables, Fd in_use, uint32_t entries);

  // Waits until no program sees the other any more.
  Result<> use(int which);
  [[nodiscard]] int used() const { return used_; }
  [[nodiscard]] int unused() const { return 1 - used_; }
  [[nodiscard]] int fd(int which) const { return tables_[static_cast<size_t>(which)].get(); }
  [[nodiscard]] int in_use() const { return in_use_.get(); }  // the map that programs look in
  [[nodiscard]] uint32_t entries() const { return entries_; }
  // Whether the kernel made all entries with the tables, or makes each when it is needed.
  [[nodiscard]] bool is_made_at_once() const;

 private:
  std::array<Fd, 2> tables_;
  Fd in_use_;
  uint32_t entries_ = 0;
  int used_ = 0;
};

}  // namespace pkprof
