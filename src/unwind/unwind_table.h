// SPDX-License-Identifier: Apache-2.0
// How the frames of one file's functions are left: by offset in the file, as the kernel side
// searches it (pkprof/unwind_abi.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct pk_unwind_block;

namespace pkprof {

class UnwindTable {
 public:
  struct Row {
    uint32_t offset = 0;  // in the file, up to the next row's
    uint32_t rule = 0;    // PK_RULE()
  };

  // Of a file's functions: 8 bytes a row, no more than so many. Without call frame information it
  // is empty. What lies beyond 4 GiB in the file is left out.
  static constexpr size_t most_rows = 8 << 20;
  static Result<UnwindTable> read(Fd file);
  static Result<UnwindTable> of_image(std::string image);
  UnwindTable() = default;

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::span<const Row> rows() const { return rows_; }
  [[nodiscard]] uint32_t rule_at(uint64_t offset) const;

  // As the kernel side has it.
  [[nodiscard]] size_t blocks() const;
  void lay_out(std::span<pk_unwind_block> to) const;

 private:
  struct Index {
    uint64_t first = 0;
    uint64_t pages = 0;
    uint32_t shift = 0;
  };
  [[nodiscard]] Index index() const;

  std::vector<Row> rows_;
};

}  // namespace pkprof
