// SPDX-License-Identifier: Apache-2.0
// The rows of the list: those of the ledger, chosen, in order, with words for why.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"
#include "report/ledger.h"
#include "top/column.h"
#include "top/rates.h"

namespace pkprof::top {

// Of a column of CPU time, in nanoseconds.
[[nodiscard]] uint64_t value_of(const LedgerRow& row, Column column);

struct TableOptions {
  By by = By::pid;
  Column sort = Column::costs;
  bool reverse = false;
  bool tree = false;   // children below their parents; of processes and threads only
  std::string filter;  // rows with this in their name, executable or control group
  bool unicode = true;
};

struct TableRow {
  size_t row = 0;    // of Ledger::processes
  size_t depth = 0;  // in the tree
};

// Times by group and by something else that has a number. They are put in, then settled, then asked
// for.
class Shares {
 public:
  struct Share {
    GroupId group = 0;
    uint32_t what = 0;
    uint64_t ns = 0;
  };
  void add(GroupId group, uint32_t what, uint64_t ns) { all_.push_back({group, what, ns}); }
  void settle();  // adds up what is alike
  // Of one group, the most first.
  [[nodiscard]] std::span<const Share> of(GroupId group) const;
  [[nodiscard]] const std::vector<Share>& all() const { return all_; }

 private:
  std::vector<Share> all_;
};

class Table {
 public:
  // `profile`, of CPU time, must outlive this. `rates`: what its rows have of other resources.
  Table(const Profile& profile, const TableOptions& options, Rates rates = {});

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const std::vector<TableRow>& rows() const { return rows_; }
  [[nodiscard]] const LedgerRow& ledger_row(const TableRow& row) const {
    return ledger_.processes[row.row];
  }
  // Of a column of numbers: nanoseconds, or bytes.
  [[nodiscard]] uint64_t value(const TableRow& row, Column column) const;
  [[nodiscard]] const Rates& rates() const { return rates_; }
  // What stands in a row's first columns; the name is cleaned.
  [[nodiscard]] std::string id(const TableRow& row) const;
  [[nodiscard]] size_t id_width() const { return id_width_; }
  [[nodiscard]] std::string name(const TableRow& row) const;
  // The same for the same process or group in every profile.
  [[nodiscard]] std::string key(const TableRow& row) const;
  // "NET_RX 12.3, TIMER 0.4": by what asynchronous work it was served, the most first; and for whom
  // it worked: "for nginx[33] 20.1". Cleaned.
  [[nodiscard]] std::string why(const TableRow& row) const;
  // Of all: asynchronous work by source, and by whom it was for; the `most` that have most of it,
  // the most first.
  using Part = std::pair<std::string, uint64_t>;  // cleaned; nanoseconds
  [[nodiscard]] std::vector<Part> async_by_source(size_t most) const;
  [[nodiscard]] std::vector<Part> async_by_party(size_t most) const;

 private:
  void add_flows();
  [[nodiscard]] bool is_wanted(const LedgerRow& row) const;
  void sort();
  void make_tree();
  [[nodiscard]] bool is_by_process() const {
    return options_.by == By::pid || options_.by == By::thread;
  }
  [[nodiscard]] std::string party(GroupId id) const;
  [[nodiscard]] std::string source(StringId id) const;

  const Profile& profile_;
  const TableOptions options_;
  const Ledger ledger_;
  const Rates rates_;
  std::vector<TableRow> rows_;
  size_t id_width_;
  Shares async_;       // by who was served, and source
  Shares worked_for_;  // by who was on the CPU, and who was served
};

// "softirq:NET_RX" as "NET_RX"; the rest as it is. Not cleaned.
[[nodiscard]] std::string_view short_source(std::string_view source);

}  // namespace pkprof::top
