// SPDX-License-Identifier: Apache-2.0
// Rows into SQLite. An id is a hash of eight bytes, and most of a row is ids. So a row that is
// shared gets the next number of its table, and whatever refers to it has that number, of two bytes
// or three. This halves the file.
#pragma once

#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "store/failure.h"
#include "store/sqlite/tables.h"

namespace pkprof::store {

// Of one cut: rows before those that refer to them.
class RowWriter {
 public:
  explicit RowWriter(Database& database) : database_(database) {}

  // Shared rows: one that is there stays. Throws a Failure where another content has its id.
  template <typename Row>
  void add_shared(const std::vector<Row>& rows) {
    if (rows.empty()) return;
    Statement find = database_.prepare(find_sql<Row>());
    Statement insert = database_.prepare(insert_sql<Row>("hash", 1));
    for (const Row& row : rows) add_shared(find, insert, row);
  }

  // False if the cut is there already. Its identity is the first columns behind its id.
  bool add_cut(const CutRow& cut) {
    constexpr int identity_columns = 3;
    Statement find = database_.prepare(find_sql<CutRow>(1 + identity_columns));
    Statement insert = database_.prepare(insert_sql<CutRow>("hash", 1));
    return add_shared(find, insert, cut, 1 + identity_columns);
  }

  template <typename Row>
  void add_of_cut(const std::vector<Row>& rows) {
    if (rows.empty()) return;
    Statement insert = database_.prepare(insert_sql<Row>("", 0));
    for (const Row& row : rows) {
      bind_columns(insert, row, 0);
      insert.run();
    }
  }

 private:
  // The number of the row with a hash, and whether its columns [1, past) are those that are bound.
  template <typename Row>
  static std::string find_sql(int past = INT32_MAX) {
    return "SELECT id, (" + column_list<Row>(1, past) + ") IS (" + question_marks<Row>(1, past) +
           ") FROM " + Table<Row>::name + " WHERE hash = ?";
  }

  template <typename Row>
  static std::string insert_sql(const std::string& before, int first) {
    const std::string more = before.empty() ? "" : before + ", ";
    return std::string("INSERT INTO ") + Table<Row>::name + "(" + more + column_list<Row>(first) +
           ") VALUES(" + (before.empty() ? "" : "?, ") + question_marks<Row>(first) + ")";
  }

  // Whether it is new.
  template <typename Row>
  bool add_shared(Statement& find, Statement& insert, const Row& row, int past = INT32_MAX) {
    bind_columns(find, row, 1, past);
    find.bind(row.id);
    const bool is_there = find.step();
    if (is_there && find.number(1) == 0)
      throw Failure{std::string("two different rows of ") + Table<Row>::name +
                    " have one id; nothing was changed"};
    uint64_t number = is_there ? find.number(0) : 0;
    find.reset();
    if (!is_there) {
      insert.bind(row.id);
      bind_columns(insert, row, 1);
      insert.run();
      number = database_.last_number();
    }
    // Ids of two tables may be the same only where it does not matter.
    if (numbers_.try_emplace(row.id, number).first->second != number)
      throw Failure{"rows of two tables have one id; nothing was changed"};
    return !is_there;
  }

  template <typename Row>
  void bind_columns(Statement& statement, const Row& row, int first, int past = INT32_MAX) {
    int at = 0;
    each_column<Row>([&](const auto& column) {
      if (at >= first && at < past) bind(statement, column, row);
      ++at;
    });
  }

  template <typename Row, typename T>
  void bind(Statement& statement, const Column<Row, T>& column, const Row& row) {
    if constexpr (std::is_same_v<T, std::vector<Id>>) {
      list_.clear();
      for (const Id id : row.*column.member) list_.push_back(number_of(id));
      statement.bind(list_);
    } else {
      statement.bind(row.*column.member);
    }
  }
  template <typename Row>
  void bind(Statement& statement, const Reference<Row>& column, const Row& row) {
    statement.bind(number_of(row.*column.member));
  }

  [[nodiscard]] uint64_t number_of(Id id) const { return id == no_id ? no_id : numbers_.at(id); }

  Database& database_;
  std::unordered_map<Id, uint64_t> numbers_;
  std::vector<uint64_t> list_;
};

}  // namespace pkprof::store
