// SPDX-License-Identifier: Apache-2.0
// The columns of numbers of the ledger, as far as a terminal has room for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/groups.h"
#include "report/ledger.h"
#include "report/options.h"

namespace pkprof {

enum class LedgerColumn : uint8_t {
  seems = 0,
  user,
  own,
  async,
  costs,
  for_others,  // this one and the next only where servers worked for clients
  with_servers,
  stolen
};
inline constexpr size_t ledger_column_count = 8;
// By column, in nanoseconds.
using LedgerNumbers = std::array<uint64_t, ledger_column_count>;

[[nodiscard]] LedgerNumbers numbers_of(const LedgerRow& row);
void add(LedgerNumbers& to, const LedgerNumbers& numbers);

class LedgerColumns {
 public:
  // What has no room goes: first blanks between numbers, then FOR OTHERS, then WITH SERVERS.
  // `id_width` is of what stands before the name.
  LedgerColumns(const Ledger& ledger, size_t id_width, size_t width);

  [[nodiscard]] size_t width() const;  // of all
  [[nodiscard]] bool shows(LedgerColumn column) const { return widths_[index(column)] != 0; }
  // Titles of two words take two lines; "" where none of these is shown.
  [[nodiscard]] std::string upper_titles() const;
  [[nodiscard]] std::string titles() const;
  // In percent of one CPU.
  [[nodiscard]] std::string row(const LedgerNumbers& numbers, uint64_t duration_ns,
                                const Style& style) const;
  // What the titles mean, in lines of at most 71 columns.
  [[nodiscard]] std::vector<std::string> legend(By by) const;

 private:
  using Widths = std::array<size_t, ledger_column_count>;  // with a blank in front; 0: not shown
  static size_t index(LedgerColumn column) { return static_cast<size_t>(column); }

  Widths widths_;
};

// Of a ledger's text: names get at least so many columns.
inline constexpr size_t min_name_width = 12;
inline constexpr size_t max_name_width = 24;

}  // namespace pkprof
