// SPDX-License-Identifier: Apache-2.0
// Names that a JIT compiler tells through /tmp/perf-PID.map: "START SIZE NAME", in hexadecimal, a
// line for each function, in the order in which they were compiled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/ranges.h"

namespace pkprof {

class PerfMap {
 public:
  static constexpr size_t max_file = size_t{256} << 20;  // what is beyond it is not read
  static constexpr size_t max_name = 1024;               // longer names are cut

  // Later lines replace earlier ones where they overlap, since a JIT compiler reuses memory.
  static PerfMap parse(std::string_view text);

  [[nodiscard]] std::string_view find(uint64_t address) const;  // "" when not known
  [[nodiscard]] size_t size() const { return pieces_.size(); }
  [[nodiscard]] size_t malformed() const { return malformed_; }

 private:
  std::string names_;  // ended by NULs
  std::vector<FlatRange> pieces_;
  size_t malformed_ = 0;
};

}  // namespace pkprof
