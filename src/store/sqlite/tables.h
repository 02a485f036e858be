// SPDX-License-Identifier: Apache-2.0
// The tables of rows.h in SQL, and rows into and out of them.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "store/sqlite/database.h"

namespace pkprof::store {

// "a, b, c": the columns [first, past), each with `before` in front.
template <typename Row>
[[nodiscard]] std::string column_list(int first = 0, int past = INT32_MAX,
                                      const std::string& before = "") {
  std::string list;
  int at = 0;
  each_column<Row>([&](const auto& column) {
    if (at >= first && at < past) list += (list.empty() ? "" : ", ") + before + column.name;
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
  // Rows of a cut lie side by side.
  sql += "PRIMARY KEY(" + column_list<Row>(0, Table<Row>::keys) + "))";
  return Table<Row>::keys > 1 ? sql + " WITHOUT ROWID" : sql;
}

// Where the first column is the number of the rest, a row that is there stays. One that differs in
// columns before `past` makes the statement fail, since no column may be NULL.
template <typename Row>
[[nodiscard]] std::string insert_sql(int past = INT32_MAX) {
  std::string values;
  each_column<Row>([&](const auto&) { values += values.empty() ? "?" : ", ?"; });
  std::string sql = std::string("INSERT INTO ") + Table<Row>::name + "(" + column_list<Row>() +
                    ") VALUES(" + values + ")";
  if (Table<Row>::keys == 1)
    sql += " ON CONFLICT(id) DO UPDATE SET " + column_list<Row>(1, 2) + " = NULL WHERE (" +
           column_list<Row>(1, past) + ") IS NOT (" + column_list<Row>(1, past, "excluded.") + ")";
  return sql;
}

template <typename Row>
void insert_row(Statement& insert, const Row& row) {
  each_column<Row>([&](const auto& column) { insert.bind(row.*column.member); });
  insert.run();
}

template <typename Row>
void insert_rows(const Database& database, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  Statement insert = database.prepare(insert_sql<Row>());
  for (const Row& row : rows) insert_row(insert, row);
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
