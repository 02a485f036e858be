// SPDX-License-Identifier: Apache-2.0
// SQLite's C interface: connections, statements and transactions that end where their scope does.
// What fails throws a Failure.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/rows.h"

namespace pkprof::store {

// A prepared statement. Values are bound, never part of its text.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql);

  // Of the next `?`.
  void bind(uint64_t number);
  void bind(const std::string& text);
  // A list is a blob: seven bits a byte, the lowest first, the eighth where more follow.
  void bind(const std::vector<uint64_t>& numbers);
  // Whether there is a row.
  bool step();
  // For one that gives no rows: runs it, and makes it ready for other values.
  void run();
  void reset();

  [[nodiscard]] uint64_t number(int column) const;
  void get(int column, uint64_t& value) const { value = number(column); }
  void get(int column, uint32_t& value) const;
  void get(int column, std::string& value) const;
  void get(int column, std::vector<uint64_t>& value) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class Database {
 public:
  // `flags` of sqlite3_open_v2().
  Database(const std::string& path, int flags);

  void run(const std::string& sql);
  [[nodiscard]] Statement prepare(const std::string& sql) const { return {database_.get(), sql}; }
  // The one number that `sql` asks for.
  [[nodiscard]] uint64_t number(const std::string& sql) const;
  // Of the row that was inserted last.
  [[nodiscard]] uint64_t last_number() const;
  // Rows that the last statement inserted, changed or deleted.
  [[nodiscard]] uint64_t changed() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

// All of it or nothing: what is not committed by the end is undone.
class Transaction {
 public:
  enum class Kind : uint8_t { read, write };
  Transaction(Database& database, Kind kind);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace pkprof::store
