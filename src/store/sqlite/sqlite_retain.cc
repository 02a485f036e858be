// SPDX-License-Identifier: Apache-2.0
// Deleting from a store in SQLite. A cut's own rows go with it; a stack, a label or a name goes
// when nothing names it any more, which is looked for from the outside in: what charges name, what
// that names, and so on.
#include <algorithm>

#include "store/failure.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/tables.h"

namespace pkprof::store {
namespace {

// Marks all ids in a column of lists.
template <typename Row>
void mark_lists(Database& database, const char* table, const char* column) {
  Statement lists = database.prepare(std::string("SELECT ") + column + " FROM " + Table<Row>::name);
  Statement mark = database.prepare(std::string("INSERT OR IGNORE INTO ") + table + " VALUES(?)");
  std::vector<Id> ids;
  while (lists.step()) {
    lists.get(0, ids);
    for (const Id id : ids) {
      mark.bind(id);
      mark.run();
    }
  }
}

}  // namespace

uint64_t SqliteStore::bytes_in_use() const {
  return (database_.number("PRAGMA page_count") - database_.number("PRAGMA freelist_count")) *
         database_.number("PRAGMA page_size");
}

// `which` is a query of ids, with one number to bind.
uint64_t SqliteStore::delete_cuts(const std::string& which, uint64_t bound) {
  database_.run("CREATE TEMP TABLE IF NOT EXISTS going(id INTEGER PRIMARY KEY)");
  database_.run("DELETE FROM going");
  Statement choose = database_.prepare("INSERT INTO going " + which);
  choose.bind(bound);
  choose.run();
  each_table_of_cuts(CutRows(), [this]<typename Row>(const std::vector<Row>&) {
    database_.run(std::string("DELETE FROM ") + Table<Row>::name + " WHERE cut IN going");
  });
  database_.run("DELETE FROM cuts WHERE id IN going");
  return database_.changed();
}

void SqliteStore::delete_unused() {
  const auto keep = [this](const char* table, const char* used) {
    database_.run(std::string("DELETE FROM ") + table + " WHERE id NOT IN (" + used + ")");
  };
  for (const char* const table : {"used_labels", "used_frames"}) {
    database_.run(std::string("CREATE TEMP TABLE IF NOT EXISTS ") + table +
                  "(id INTEGER PRIMARY KEY)");
    database_.run(std::string("DELETE FROM ") + table);
  }
  keep("clients", "SELECT client FROM charges UNION SELECT client FROM requests");
  keep("wakeups", "SELECT wakeup FROM charges");
  keep("stacks",
       "SELECT stack FROM charges UNION SELECT call FROM clients UNION SELECT stack FROM wakeups");
  mark_lists<StackRow>(database_, "used_frames", "frames");
  keep("frames", "SELECT id FROM used_frames");
  mark_lists<ClientRow>(database_, "used_labels", "via");
  mark_lists<WakeupRow>(database_, "used_labels", "before");
  keep("labels",
       "SELECT ran_on FROM charges UNION SELECT served FROM charges UNION SELECT server FROM"
       " requests UNION SELECT label FROM threads UNION SELECT label FROM clients UNION SELECT"
       " label FROM wakeups UNION SELECT id FROM used_labels");
  keep("mappings", "SELECT mapping FROM frames");
  keep("strings",
       "SELECT source FROM charges UNION SELECT function FROM frames UNION SELECT file FROM frames"
       " UNION SELECT name FROM threads UNION SELECT name FROM figures UNION SELECT sentence FROM"
       " degraded");
}

Result<uint64_t> SqliteStore::retain(const Retention& keep) {
  return as_result(path_, [&] {
    uint64_t deleted = 0;
    {
      Transaction transaction(database_, Transaction::Kind::write);
      deleted += delete_cuts("SELECT id FROM cuts WHERE start_unix_ns < ?",
                             std::min(keep.oldest_unix_ns, uint64_t{INT64_MAX}));
      if (deleted != 0) delete_unused();
      while (keep.max_bytes != 0) {
        const uint64_t bytes = bytes_in_use();
        const uint64_t cuts = database_.number("SELECT count(*) FROM cuts");
        if (bytes <= keep.max_bytes || cuts == 0) break;
        // As many as are too many on the average; the rest the next time around.
        const uint64_t too_many =
            std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(cuts) *
                                                        (1 - static_cast<double>(keep.max_bytes) /
                                                                 static_cast<double>(bytes))));
        deleted += delete_cuts("SELECT id FROM cuts ORDER BY start_unix_ns LIMIT ?", too_many);
        delete_unused();
      }
      transaction.commit();
    }
    // Free pages go back to the file system, and so does the log.
    database_.run("PRAGMA incremental_vacuum");
    database_.run("PRAGMA wal_checkpoint(TRUNCATE)");
    return deleted;
  });
}

}  // namespace pkprof::store
