// SPDX-License-Identifier: Apache-2.0
// Names that a JIT compiler tells through /tmp/perf-PID.map: "START SIZE NAME", in hexadecimal, a
// line for each function, in the order in which they were compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/elf/ranges.h"

namespace pkprof {

class PerfMap {
 public:
  static constexpr size_t max_name = 1024;  // longer names are cut

  // Later lines replace earlier ones where they overlap, since a JIT compiler reuses memory.
  static PerfMap parse(std::string_view text);
  // The same of the first `size` bytes of a file. Nothing when it cannot be read, or when that
  // would take more than `limit` bytes of memory.
  static std::optional<PerfMap> read(int fd, uint64_t size, uint64_t limit);

  [[nodiscard]] std::string_view find(uint64_t address) const;  // "" when not known
  [[nodiscard]] size_t size() const { return pieces_.size(); }
  [[nodiscard]] size_t malformed() const { return malformed_; }
  [[nodiscard]] uint64_t memory() const {
    return names_.capacity() + pieces_.capacity() * sizeof(FlatRange);
  }

 private:
  class Builder;

  std::string names_;  // ended by NULs
  std::vector<FlatRange> pieces_;
  size_t malformed_ = 0;
};

}  // namespace pkprof
