// SPDX-License-Identifier: Apache-2.0
// A profile out of SQLite. What a query is of (cuts, and labels that it leaves out) goes into
// temporary tables; each sum is then one statement.
#include <algorithm>

#include "store/failure.h"
#include "store/from_rows.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/tables.h"

namespace pkprof::store {
namespace {

class SqliteReader : public ContentReader {
 public:
  explicit SqliteReader(const Database& database) : database_(database) {}

  void read(const std::vector<Id>& ids, std::vector<StringRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<MappingRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<FrameRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<StackRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<LabelRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<ClientRow>& rows) override { get(ids, rows); }
  void read(const std::vector<Id>& ids, std::vector<WakeupRow>& rows) override { get(ids, rows); }

 private:
  template <typename Row>
  void get(const std::vector<Id>& ids, std::vector<Row>& rows) {
    Statement statement = database_.prepare("SELECT " + column_list<Row>() + " FROM " +
                                            Table<Row>::name + " WHERE id = ?");
    for (const Id id : ids) {
      statement.bind(id);
      if (statement.step()) rows.push_back(row_at<Row>(statement));
      statement.reset();
    }
  }

  const Database& database_;
};

template <typename Row>
std::vector<Row> all_rows(Statement statement) {
  std::vector<Row> rows;
  while (statement.step()) rows.push_back(row_at<Row>(statement));
  return rows;
}

void choose_cuts(Database& database, const StoreQuery& query) {
  std::string sql =
      "CREATE TEMP TABLE chosen AS SELECT id, host, start_unix_ns FROM cuts"
      " WHERE start_unix_ns >= ? AND start_unix_ns < ?";
  for (size_t i = 0; i < query.hosts.size(); ++i) sql += i == 0 ? " AND host IN (?" : ", ?";
  if (!query.hosts.empty()) sql += ")";
  for (size_t i = 0; i < query.labels.size(); ++i)
    sql += " AND EXISTS (SELECT 1 FROM tags WHERE cut = id AND tag = ? AND value = ?)";
  Statement choose = database.prepare(sql + " ORDER BY start_unix_ns, host, boot_id");
  choose.bind(std::min(query.since_unix_ns, uint64_t{INT64_MAX}));
  choose.bind(std::min(query.until_unix_ns, uint64_t{INT64_MAX}));
  for (const std::string& host : query.hosts) choose.bind(host);
  for (const auto& [tag, value] : query.labels) {
    choose.bind(tag);
    choose.bind(value);
  }
  choose.run();
}

// Processes, and clients elsewhere: those that the query is of, and the others.
void choose_labels(Database& database, const ProcessFilter& filter) {
  database.run("CREATE TEMP TABLE wanted(id INTEGER PRIMARY KEY)");
  database.run("CREATE TEMP TABLE left_out(id INTEGER PRIMARY KEY)");
  if (filter.is_any()) return;
  const std::string parties = "SELECT id FROM labels WHERE kind IN (" +
                              std::to_string(static_cast<int>(LabelKind::process)) + ", " +
                              std::to_string(static_cast<int>(LabelKind::remote)) + ")";
  std::string sql = "INSERT INTO wanted " + parties;
  std::vector<const std::string*> values;
  const auto add = [&](const std::string& value, const char* condition, int times = 1) {
    if (value.empty()) return;
    sql += condition;
    values.insert(values.end(), times, &value);
  };
  add(filter.container, " AND ? IN (container, container_name, container_id)");
  add(filter.unit, " AND unit = ?");
  add(filter.exe, " AND exe = ?");
  add(filter.image, " AND image = ?");
  add(filter.comm, " AND comm = ?");
  Statement choose = database.prepare(sql);
  for (const std::string* value : values) choose.bind(*value);
  choose.run();
  database.run("INSERT INTO left_out " + parties + " AND id NOT IN wanted");
}

// All that is not a sum is what cuts are grouped by; their start is the first one's.
std::vector<CutRow> sums_of_cuts(const Database& database) {
  return all_rows<CutRow>(database.prepare(
      "SELECT 0, cuts.host, '', min(cuts.start_unix_ns), kernel, command, counted_by, cpus,"
      " measured, frequency_hz, counted_functions, sum(duration_ns), sum(cpu_ns), sum(paused_ns),"
      " sum(samples_taken), sum(samples_lost), sum(cost_kernel_ns), sum(cost_user_ns),"
      " sum(unwatched_ns) FROM chosen JOIN cuts USING (id)"
      " GROUP BY cuts.host, kernel, command, counted_by, cpus, measured, frequency_hz,"
      " counted_functions ORDER BY min(cuts.start_unix_ns), cuts.host"));
}

// What is for a process that was left out is OTHER's, and one row for each source. Such a process
// keeps its name where it ran while the kernel served one that is wanted. What other
// resources such a process used is in no ledger, and left out altogether.
std::vector<ChargeRow> sums_of_charges(const Database& database, bool is_filtered) {
  std::string charges = "charges";
  if (is_filtered) {
    const std::string other = std::to_string(no_id);
    const std::string of_chosen = "served NOT IN left_out";
    const auto if_chosen = [&](const std::string& column) {
      return "iif(" + of_chosen + ", " + column + ", 0) AS " + column;
    };
    charges =
        "(SELECT cut, number, resource,"
        " iif(ran_on IN left_out AND served NOT IN wanted, " +
        other + ", ran_on) AS ran_on, iif(" + of_chosen + ", served, " + other +
        ") AS served, source, " + if_chosen("basis") + ", " + if_chosen("stack") + ", " +
        if_chosen("client") + ", " + if_chosen("wakeup") + ", " + if_chosen("thread") + ", " +
        if_chosen("served_thread") +
        ", samples, ns, exact_ns, calls FROM charges WHERE resource = 0 OR " + of_chosen + ")";
  }
  return all_rows<ChargeRow>(database.prepare(
      "SELECT 0, 0, resource, ran_on, served, source, basis, stack, client, wakeup, thread,"
      " served_thread, sum(samples), sum(ns), sum(exact_ns), sum(calls)"
      " FROM chosen CROSS JOIN " +
      charges +
      " AS c ON c.cut = chosen.id"
      " GROUP BY resource, ran_on, served, source, basis, stack, client, wakeup, thread,"
      " served_thread ORDER BY min(chosen.rowid), min(c.number)"));
}

QueryRows find(Database& database, const StoreQuery& query) {
  choose_cuts(database, query);
  QueryRows found{.cuts = sums_of_cuts(database)};
  if (found.cuts.empty()) return found;
  choose_labels(database, query.served);
  found.charges = sums_of_charges(database, !query.served.is_any());
  found.requests = all_rows<RequestRow>(database.prepare(
      "SELECT 0, server, client, sum(requests) FROM chosen CROSS JOIN requests ON cut = id"
      " WHERE server NOT IN left_out GROUP BY server, client ORDER BY min(chosen.rowid)"));
  // The name that stands in the row of the first cut: SQLite's rule for min().
  found.threads = all_rows<ThreadRow>(database.prepare(
      "SELECT min(chosen.rowid), label, thread, name FROM chosen CROSS JOIN threads ON cut = id"
      " WHERE label NOT IN left_out GROUP BY label, thread ORDER BY min(chosen.rowid)"));
  found.figures = all_rows<FigureRow>(
      database.prepare("SELECT 0, kind, name, sum(value) FROM chosen CROSS JOIN figures ON cut = id"
                       " GROUP BY kind, name"));
  Statement degraded = database.prepare(
      "SELECT host, sentence FROM chosen CROSS JOIN degraded ON cut = id GROUP BY host, sentence"
      " ORDER BY min(chosen.rowid), min(number)");
  while (degraded.step()) {
    QueryRows::DegradedHost& row = found.degraded.emplace_back();
    degraded.get(0, row.host);
    degraded.get(1, row.sentence);
  }
  return found;
}

}  // namespace

Result<Profile> SqliteStore::query(const StoreQuery& query) {
  return as_result(path_, [&] {
    // Never committed: all of it reads one state, and the temporary tables go with it.
    const Transaction transaction(database_, Transaction::Kind::read);
    const QueryRows found = find(database_, query);
    if (found.cuts.empty()) throw Failure{"no cut is of that time, of those hosts and labels"};
    SqliteReader reader(database_);
    return profile_of(found, reader);
  });
}

Result<StoreInfo> SqliteStore::info() {
  return as_result(path_, [this] {
    const Transaction transaction(database_, Transaction::Kind::read);
    StoreInfo info{.bytes = bytes_in_use(), .schema = database_.number("PRAGMA user_version")};
    Statement hosts = database_.prepare(
        "SELECT host, count(*), min(start_unix_ns), max(start_unix_ns + duration_ns), sum(cpu_ns)"
        " FROM cuts GROUP BY host ORDER BY host");
    while (hosts.step()) {
      StoreInfo::Host& host = info.hosts.emplace_back();
      hosts.get(0, host.name);
      hosts.get(1, host.cuts);
      hosts.get(2, host.first_unix_ns);
      hosts.get(3, host.last_unix_ns);
      hosts.get(4, host.cpu_ns);
      info.cuts += host.cuts;
    }
    return info;
  });
}

}  // namespace pkprof::store
