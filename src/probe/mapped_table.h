// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"

namespace pkprof {

// A table of the kernel's in our memory.
template <typename Entry>
class MappedTable {
 public:
  MappedTable() = default;
  MappedTable(MappedTable&& other) noexcept : entries_(std::exchange(other.entries_, {})) {}
  MappedTable& operator=(MappedTable&&) = delete;
  MappedTable(const MappedTable&) = delete;
  MappedTable& operator=(const MappedTable&) = delete;
  ~MappedTable() {
    if (!entries_.empty()) munmap(entries_.data(), entries_.size_bytes());
  }
  Result<> map(int fd, size_t entries) {
    void* memory =
        mmap(nullptr, entries * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return fail_errno("mapping a table of the kernel side");
    entries_ = {static_cast<Entry*>(memory), entries};
    return {};
  }
  [[nodiscard]] std::span<Entry> entries() const { return entries_; }

 private:
  std::span<Entry> entries_;
};

}  // namespace pkprof
