// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/database.h"

#include <cstring>
#include <limits>
#include <new>

#include "store/failure.h"

namespace pkprof::store {
namespace {

constexpr int busy_timeout_ms = 30'000;

[[noreturn]] void give_up(sqlite3* database, int code) {
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    case SQLITE_NOTADB:
      throw Failure{"it is no SQLite database"};
    case SQLITE_CORRUPT:
      throw Failure{"it is damaged; `sqlite3 FILE .recover` saves what is left of it"};
    case SQLITE_FULL:
      throw Failure{"the disk is full; nothing was changed"};
    case SQLITE_BUSY:
      throw Failure{"another process has been writing to it for too long; try again"};
    case SQLITE_CANTOPEN:
      throw Failure{std::strerror(sqlite3_system_errno(database))};
    default:
      throw Failure{sqlite3_errmsg(database)};
  }
}

void check(sqlite3* database, int code) {
  if (code != SQLITE_OK) give_up(database, code);
}

}  // namespace

Statement::Statement(sqlite3* database, const std::string& sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  check(database, sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement,
                                     nullptr));
  statement_.reset(statement);
}

// SQLite's numbers are signed; addresses and ids have the same 64 bits there.
void Statement::bind(uint64_t number) {
  check(database_,
        sqlite3_bind_int64(statement_.get(), ++bound_, static_cast<sqlite3_int64>(number)));
}

void Statement::bind(const std::string& text) {
  check(database_, sqlite3_bind_text64(statement_.get(), ++bound_, text.data(), text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind(const std::vector<uint64_t>& numbers) {
  std::string bytes;
  for (uint64_t number : numbers) {
    for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7f));
    bytes += static_cast<char>(number);
  }
  check(database_, sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data(), bytes.size(),
                                       SQLITE_TRANSIENT));
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) give_up(database_, code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  step();
  reset();
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  bound_ = 0;
}

uint64_t Statement::number(int column) const {
  return static_cast<uint64_t>(sqlite3_column_int64(statement_.get(), column));
}

void Statement::get(int column, uint32_t& value) const {
  const uint64_t wide = number(column);
  if (wide > std::numeric_limits<uint32_t>::max()) damaged("a number is out of range");
  value = static_cast<uint32_t>(wide);
}

void Statement::get(int column, std::string& value) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  value.assign(text ? text : "", text ? static_cast<size_t>(bytes) : 0);
}

void Statement::get(int column, std::vector<uint64_t>& value) const {
  const auto* bytes =
      static_cast<const unsigned char*>(sqlite3_column_blob(statement_.get(), column));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  value.clear();
  uint64_t number = 0;
  int shift = 0;
  for (size_t i = 0; i < size; ++i) {
    if (shift > 56) damaged("a number in a list is too long");
    number |= static_cast<uint64_t>(bytes[i] & 0x7f) << shift;
    shift += 7;
    if (bytes[i] & 0x80) continue;
    value.push_back(number);
    number = 0;
    shift = 0;
  }
  if (shift != 0) damaged("a list ends within a number");
}

Database::Database(const std::string& path, int flags) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (!database) throw std::bad_alloc();
  check(database, code);
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, busy_timeout_ms);
  // The file may be another's work: no trigger or view of its own runs, and pages are looked at.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  run("PRAGMA cell_size_check = ON");
}

void Database::run(const std::string& sql) {
  check(database_.get(), sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

uint64_t Database::number(const std::string& sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.number(0) : 0;
}

uint64_t Database::last_number() const {
  return static_cast<uint64_t>(sqlite3_last_insert_rowid(database_.get()));
}

uint64_t Database::changed() const {
  return static_cast<uint64_t>(sqlite3_changes64(database_.get()));
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database_.run(kind == Kind::read ? "BEGIN" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const Failure&) {  // NOLINT(bugprone-empty-catch): SQLite has done so by itself
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace pkprof::store
