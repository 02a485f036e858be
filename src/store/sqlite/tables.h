// SPDX-License-Identifier: Apache-2.0
// The tables of rows.h in SQL, and rows into and out of them.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "store/sqlite/database.h"

namespace pkprof::store {

// "a, b, c": the columns [first, past).
template <typename Row>
[[nodiscard]] std::string column_list(int first = 0, int past = INT32_MAX) {
  std::string list;
  int at = 0;
  each_column<Row>([&](const auto& column) {
    if (at >= first && at < past) list += (list.empty() ? "" : ", ") + std::string(column.name);
    ++at;
  });
  return list;
}

// "?, ?, ?", for the columns [first, past).
template <typename Row>
[[nodiscard]] std::string question_marks(int first = 0, int past = INT32_MAX) {
  std::string list;
  int at = 0;
  each_column<Row>([&](const auto&) {
    if (at >= first && at < past) list += list.empty() ? "?" : ", ?";
    ++at;
  });
  return list;
}

template <typename Row>
[[nodiscard]] std::string create_table_sql() {
  std::string sql = std::string("CREATE TABLE ") + Table<Row>::name + "(";
  each_column<Row>([&](const auto& column) {
    using Value = std::remove_cvref_t<decltype(std::declval<Row>().*column.member)>;
    const char* type = std::is_same_v<Value, std::string>       ? "TEXT"
                       : std::is_same_v<Value, std::vector<Id>> ? "BLOB"
                                                                : "INTEGER";
    sql += std::string(column.name) + " " + type + " NOT NULL, ";
  });
  // Those that are shared have a small number as id, and their own id as hash. Rows of a cut lie
  // side by side.
  if (Table<Row>::keys == 1) return sql + "hash INTEGER NOT NULL UNIQUE, PRIMARY KEY(id))";
  return sql + "PRIMARY KEY(" + column_list<Row>(0, Table<Row>::keys) + ")) WITHOUT ROWID";
}

// The row that a statement is at, which gives all columns in their order.
template <typename Row>
[[nodiscard]] Row row_at(const Statement& statement) {
  Row row;
  int at = 0;
  each_column<Row>([&](const auto& column) { statement.get(at++, row.*column.member); });
  return row;
}

}  // namespace pkprof::store
