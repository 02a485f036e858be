// SPDX-License-Identifier: Apache-2.0
// Opening, making and filling a store in SQLite.
#include "store/sqlite/sqlite_store.h"

#include <sys/random.h>

#include "model/file.h"
#include "store/failure.h"
#include "store/sqlite/row_writer.h"
#include "store/sqlite/tables.h"
#include "store/to_rows.h"

namespace pkprof::store {
namespace {

// "pkpS", in the header of the file; file(1) shows it.
constexpr uint64_t application_id = 0x706b7053;
// Of the tables. A newer one has a step in init() that makes it of the one before.
constexpr uint64_t schema_version = 1;

// Throws unless it is a store, or an empty file that may become one.
void check_schema(const Database& database, Store::Mode mode) {
  const uint64_t id = database.number("PRAGMA application_id");
  const uint64_t version = database.number("PRAGMA user_version");
  if (id != application_id) {
    const bool empty =
        id == 0 && version == 0 && database.number("SELECT count(*) FROM sqlite_schema") == 0;
    if (empty && mode == Store::Mode::create) return;
    throw Failure{empty ? "there is no store in it yet: make one with `pkprof store init`"
                        : "it is a database, but no store of pkprof's"};
  }
  if (version > schema_version)
    throw Failure{"its schema is " + std::to_string(version) + ", this pkprof knows " +
                  std::to_string(schema_version) + "; use a newer pkprof"};
}

uint64_t random_seed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) throw Failure{"there is no random number"};
  return seed | 1;
}

uint64_t seed_of(const Database& database) {
  const uint64_t seed = database.number("SELECT value FROM settings WHERE name = 'seed'");
  if (seed == 0) damaged("it has no seed");
  return seed;
}

}  // namespace

Result<std::unique_ptr<Store>> SqliteStore::open(const std::string& path, Mode mode) {
  // SQLite would make a file that all can read.
  if (mode == Mode::create)
    if (const auto file = open_to_write(path); !file) return std::unexpected(file.error());
  return as_result(
      path, [&]() -> std::unique_ptr<Store> { return std::make_unique<SqliteStore>(path, mode); });
}

SqliteStore::SqliteStore(std::string path, Mode mode)
    : path_(std::move(path)),
      database_(path_, mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) {
  check_schema(database_, mode);
  // A power failure may lose the last cuts, never a part of one.
  if (mode != Mode::read) database_.run("PRAGMA synchronous = NORMAL");
}

Result<> SqliteStore::init() {
  return as_result(path_, [this] {
    if (database_.number("PRAGMA application_id") == 0) {
      // Both before there is a table; neither works within a transaction.
      database_.run("PRAGMA auto_vacuum = INCREMENTAL");
      database_.run("PRAGMA journal_mode = WAL");
    }
    Transaction transaction(database_, Transaction::Kind::write);
    // Another process may have been faster.
    if (database_.number("PRAGMA user_version") == 0) {
      const auto create = [this]<typename Row>(const std::vector<Row>&) {
        database_.run(create_table_sql<Row>());
      };
      each_content_table(ContentRows(), create);
      each_table_of_cuts(CutRows(), create);
      create(std::vector<CutRow>());
      database_.run("CREATE INDEX cuts_by_start ON cuts(start_unix_ns)");
      database_.run("CREATE TABLE settings(name TEXT PRIMARY KEY, value INTEGER NOT NULL)");
      Statement seed = database_.prepare("INSERT INTO settings(name, value) VALUES('seed', ?)");
      seed.bind(random_seed());
      seed.run();
      database_.run("PRAGMA application_id = " + std::to_string(application_id));
      database_.run("PRAGMA user_version = " + std::to_string(schema_version));
    }
    transaction.commit();
  });
}

Result<bool> SqliteStore::put(const Cut& cut) {
  return as_result(path_, [&] {
    const CutAsRows rows = rows_of(cut, seed_of(database_));
    Transaction transaction(database_, Transaction::Kind::write);
    RowWriter writer(database_);
    if (!writer.add_cut(rows.cut.cut)) return false;
    each_content_table(rows.content, [&](const auto& table) { writer.add_shared(table); });
    each_table_of_cuts(rows.cut, [&](const auto& table) { writer.add_of_cut(table); });
    transaction.commit();
    return true;
  });
}

}  // namespace pkprof::store
