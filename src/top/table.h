// SPDX-License-Identifier: Apache-2.0
// The rows of the list: those of the ledger, chosen, in order, with words for why.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"
#include "report/ledger.h"

namespace pkprof::top {

enum class Column : uint8_t { id = 0, name, seems, user, own, async, costs, stolen };
inline constexpr size_t column_count = 8;
[[nodiscard]] std::string_view title_of(Column column, By by);

struct TableOptions {
  By by = By::pid;
  Column sort = Column::costs;
  bool reverse = false;
  bool tree = false;   // children below their parents; of processes and threads only
  std::string filter;  // rows with this in their name, executable or control group
  bool unicode = true;
};

struct TableRow {
  size_t row = 0;  // of Ledger::processes
  std::string id;
  std::string name;  // cleaned
  std::string key;   // the same for the same process or group in every profile
  size_t depth = 0;  // in the tree
};

class Table {
 public:
  // `profile` must outlive this.
  Table(const Profile& profile, const TableOptions& options);

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const std::vector<TableRow>& rows() const { return rows_; }
  [[nodiscard]] const LedgerRow& ledger_row(const TableRow& row) const {
    return ledger_.processes[row.row];
  }
  // "NET_RX 12.3, TIMER 0.4": by what asynchronous work it was served, the most first; and for whom
  // it worked: "for nginx[33] 20.1". Cleaned.
  [[nodiscard]] std::string why(const TableRow& row) const;
  // Of all: asynchronous work by source, and by whom it was for; the most first.
  using Part = std::pair<std::string, uint64_t>;  // cleaned; nanoseconds
  [[nodiscard]] std::vector<Part> async_by_source() const;
  [[nodiscard]] std::vector<Part> async_by_party() const;

 private:
  void add_flows();
  [[nodiscard]] bool is_wanted(const LedgerRow& row) const;
  [[nodiscard]] TableRow row_of(size_t number) const;
  [[nodiscard]] bool is_before(const TableRow& a, const TableRow& b) const;
  void make_tree();
  [[nodiscard]] std::string party(GroupId id) const;
  [[nodiscard]] std::string source(StringId id) const;

  const Profile& profile_;
  const TableOptions options_;
  const Ledger ledger_;
  std::vector<TableRow> rows_;
  // By group, the most first.
  std::map<GroupId, std::vector<std::pair<StringId, uint64_t>>> async_;
  std::map<GroupId, std::vector<std::pair<GroupId, uint64_t>>> worked_for_;
};

// "softirq:NET_RX" as "NET_RX"; the rest as it is. Not cleaned.
[[nodiscard]] std::string_view short_source(std::string_view source);

}  // namespace pkprof::top
