// SPDX-License-Identifier: Apache-2.0
// The schema of a store, for any database: what a row of each table has. A database makes its
// tables, writes and reads them from these lists of columns.
//
// What many cuts have in common (strings, mappings, frames, stacks, labels, clients, wakeups) is
// kept once, under an id that its content gives it (content_id.h): no host needs to ask which ids
// are taken. The other tables have rows for each cut. A database may use smaller numbers of its own
// for these ids; to whoever reads rows it is the same.
//
// Enums are stored as their numbers, which never change.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace pkprof::store {

using Id = uint64_t;
// Of strings and stacks the empty one; of mappings, clients and wakeups none; of labels OTHER,
// which a query has for what it leaves out.
inline constexpr Id no_id = 0;

template <typename Row, typename T>
struct Column {
  const char* name;
  T Row::* member;
};
template <typename Row, typename T>
Column(const char*, T Row::*) -> Column<Row, T>;
// One whose value is the id of another row. Lists are lists of such ids.
template <typename Row>
struct Reference {
  const char* name;
  Id Row::* member;
};
template <typename Row>
Reference(const char*, Id Row::*) -> Reference<Row>;

// Specialized below: the name, how many of the first columns are the key, the columns.
template <typename Row>
struct Table;

struct StringRow {
  Id id = 0;
  std::string text;
};
template <>
struct Table<StringRow> {
  static constexpr const char* name = "strings";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{Column{"id", &StringRow::id},
                                      Column{"text", &StringRow::text}};
};

struct MappingRow {
  Id id = 0;
  uint64_t start = 0;
  uint64_t limit = 0;
  uint64_t offset = 0;
  std::string file;
  std::string build_id;
  uint64_t vaddr = 0;
};
template <>
struct Table<MappingRow> {
  static constexpr const char* name = "mappings";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{
      Column{"id", &MappingRow::id},      Column{"first", &MappingRow::start},
      Column{"past", &MappingRow::limit}, Column{"file_offset", &MappingRow::offset},
      Column{"file", &MappingRow::file},  Column{"build_id", &MappingRow::build_id},
      Column{"vaddr", &MappingRow::vaddr}};
};

struct FrameRow {
  Id id = 0;
  uint32_t kind = 0;
  Id mapping = 0;
  uint64_t address = 0;
  Id function = 0;  // of strings
  Id file = 0;
  uint32_t line = 0;
};
template <>
struct Table<FrameRow> {
  static constexpr const char* name = "frames";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{Column{"id", &FrameRow::id},
                                      Column{"kind", &FrameRow::kind},
                                      Reference{"mapping", &FrameRow::mapping},
                                      Column{"address", &FrameRow::address},
                                      Reference{"function", &FrameRow::function},
                                      Reference{"file", &FrameRow::file},
                                      Column{"line", &FrameRow::line}};
};

struct StackRow {
  Id id = 0;
  std::vector<Id> frames;  // leaf first
};
template <>
struct Table<StackRow> {
  static constexpr const char* name = "stacks";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{Column{"id", &StackRow::id},
                                      Column{"frames", &StackRow::frames}};
};

struct LabelRow {
  Id id = 0;
  uint32_t kind = 0;
  std::string host;  // of processes alone: KERNEL, IDLE, an address are the same for all
  uint32_t pid = 0;
  uint64_t start_ns = 0;
  uint32_t kthread = 0;
  uint32_t without_pid = 0;
  uint32_t parent_pid = 0;
  std::string comm;
  std::string first_comm;
  std::string exe;
  std::string cgroup;
  std::string container_id;
  std::string runtime;
  std::string container_name;
  std::string image;
  std::string pod;
  std::string pod_namespace;
  std::string pod_uid;
  std::string reason;
  // As reports call them; to be asked for.
  std::string container;
  std::string unit;
};
template <>
struct Table<LabelRow> {
  static constexpr const char* name = "labels";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{Column{"id", &LabelRow::id},
                                      Column{"kind", &LabelRow::kind},
                                      Column{"host", &LabelRow::host},
                                      Column{"pid", &LabelRow::pid},
                                      Column{"start_ns", &LabelRow::start_ns},
                                      Column{"kthread", &LabelRow::kthread},
                                      Column{"without_pid", &LabelRow::without_pid},
                                      Column{"parent_pid", &LabelRow::parent_pid},
                                      Column{"comm", &LabelRow::comm},
                                      Column{"first_comm", &LabelRow::first_comm},
                                      Column{"exe", &LabelRow::exe},
                                      Column{"cgroup", &LabelRow::cgroup},
                                      Column{"container_id", &LabelRow::container_id},
                                      Column{"runtime", &LabelRow::runtime},
                                      Column{"container_name", &LabelRow::container_name},
                                      Column{"image", &LabelRow::image},
                                      Column{"pod", &LabelRow::pod},
                                      Column{"pod_namespace", &LabelRow::pod_namespace},
                                      Column{"pod_uid", &LabelRow::pod_uid},
                                      Column{"reason", &LabelRow::reason},
                                      Column{"container", &LabelRow::container},
                                      Column{"unit", &LabelRow::unit}};
};

struct ClientRow {
  Id id = 0;
  Id label = 0;
  uint32_t rule = 0;
  std::vector<Id> via;  // labels
  Id call = 0;          // a stack
};
template <>
struct Table<ClientRow> {
  static constexpr const char* name = "clients";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{
      Column{"id", &ClientRow::id}, Reference{"label", &ClientRow::label},
      Column{"rule", &ClientRow::rule}, Column{"via", &ClientRow::via},
      Reference{"call", &ClientRow::call}};
};

struct WakeupRow {
  Id id = 0;
  Id label = 0;
  Id stack = 0;
  std::vector<Id> before;  // labels
};
template <>
struct Table<WakeupRow> {
  static constexpr const char* name = "wakeups";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{
      Column{"id", &WakeupRow::id}, Reference{"label", &WakeupRow::label},
      Reference{"stack", &WakeupRow::stack}, Column{"before", &WakeupRow::before}};
};

// Meta of a cut, but for lists. Of a query the sum over cuts that agree in all that is no sum.
struct CutRow {
  Id id = 0;
  std::string host;
  std::string boot_id;
  uint64_t start_unix_ns = 0;
  std::string kernel;
  std::string command;
  std::string counted_by;
  uint32_t cpus = 0;
  uint32_t measured = 0;
  uint64_t frequency_hz = 0;
  uint64_t counted_functions = 0;
  uint64_t duration_ns = 0;
  uint64_t cpu_ns = 0;  // Meta::cpu_ns()
  uint64_t paused_ns = 0;
  uint64_t samples_taken = 0;
  uint64_t samples_lost = 0;
  uint64_t cost_kernel_ns = 0;
  uint64_t cost_user_ns = 0;
  uint64_t unwatched_ns = 0;
};
template <>
struct Table<CutRow> {
  static constexpr const char* name = "cuts";
  static constexpr int keys = 1;
  static constexpr std::tuple columns{Column{"id", &CutRow::id},
                                      Column{"host", &CutRow::host},
                                      Column{"boot_id", &CutRow::boot_id},
                                      Column{"start_unix_ns", &CutRow::start_unix_ns},
                                      Column{"kernel", &CutRow::kernel},
                                      Column{"command", &CutRow::command},
                                      Column{"counted_by", &CutRow::counted_by},
                                      Column{"cpus", &CutRow::cpus},
                                      Column{"measured", &CutRow::measured},
                                      Column{"frequency_hz", &CutRow::frequency_hz},
                                      Column{"counted_functions", &CutRow::counted_functions},
                                      Column{"duration_ns", &CutRow::duration_ns},
                                      Column{"cpu_ns", &CutRow::cpu_ns},
                                      Column{"paused_ns", &CutRow::paused_ns},
                                      Column{"samples_taken", &CutRow::samples_taken},
                                      Column{"samples_lost", &CutRow::samples_lost},
                                      Column{"cost_kernel_ns", &CutRow::cost_kernel_ns},
                                      Column{"cost_user_ns", &CutRow::cost_user_ns},
                                      Column{"unwatched_ns", &CutRow::unwatched_ns}};
};

// A sample of a profile: SampleKey and SampleValue.
struct ChargeRow {
  Id cut = 0;
  uint32_t number = 0;  // in the cut
  uint32_t resource = 0;
  Id ran_on = 0;
  Id served = 0;
  Id source = 0;
  uint32_t basis = 0;
  Id stack = 0;
  Id client = 0;
  Id wakeup = 0;
  uint32_t thread = 0;
  uint32_t served_thread = 0;
  uint64_t samples = 0;  // SampleValue::count
  uint64_t ns = 0;
  uint64_t exact_ns = 0;
  uint64_t calls = 0;
};
template <>
struct Table<ChargeRow> {
  static constexpr const char* name = "charges";
  static constexpr int keys = 2;
  static constexpr std::tuple columns{
      Reference{"cut", &ChargeRow::cut},        Column{"number", &ChargeRow::number},
      Column{"resource", &ChargeRow::resource}, Reference{"ran_on", &ChargeRow::ran_on},
      Reference{"served", &ChargeRow::served},  Reference{"source", &ChargeRow::source},
      Column{"basis", &ChargeRow::basis},       Reference{"stack", &ChargeRow::stack},
      Reference{"client", &ChargeRow::client},  Reference{"wakeup", &ChargeRow::wakeup},
      Column{"thread", &ChargeRow::thread},     Column{"served_thread", &ChargeRow::served_thread},
      Column{"samples", &ChargeRow::samples},   Column{"ns", &ChargeRow::ns},
      Column{"exact_ns", &ChargeRow::exact_ns}, Column{"calls", &ChargeRow::calls}};
};

struct RequestRow {
  Id cut = 0;
  Id server = 0;
  Id client = 0;
  uint64_t requests = 0;
};
template <>
struct Table<RequestRow> {
  static constexpr const char* name = "requests";
  static constexpr int keys = 3;
  static constexpr std::tuple columns{
      Reference{"cut", &RequestRow::cut}, Reference{"server", &RequestRow::server},
      Reference{"client", &RequestRow::client}, Column{"requests", &RequestRow::requests}};
};

struct ThreadRow {
  Id cut = 0;
  Id label = 0;
  uint32_t thread = 0;
  Id name = 0;
};
template <>
struct Table<ThreadRow> {
  static constexpr const char* name = "threads";
  static constexpr int keys = 3;
  static constexpr std::tuple columns{
      Reference{"cut", &ThreadRow::cut}, Reference{"label", &ThreadRow::label},
      Column{"thread", &ThreadRow::thread}, Reference{"name", &ThreadRow::name}};
};

// Of the maps in Meta.
enum class FigureKind : uint8_t { counter = 0, user_stacks };
struct FigureRow {
  Id cut = 0;
  uint32_t kind = 0;
  Id name = 0;
  uint64_t value = 0;
};
template <>
struct Table<FigureRow> {
  static constexpr const char* name = "figures";
  static constexpr int keys = 3;
  static constexpr std::tuple columns{
      Reference{"cut", &FigureRow::cut}, Column{"kind", &FigureRow::kind},
      Reference{"name", &FigureRow::name}, Column{"value", &FigureRow::value}};
};

// Meta::degraded
struct DegradedRow {
  Id cut = 0;
  uint32_t number = 0;
  Id sentence = 0;
};
template <>
struct Table<DegradedRow> {
  static constexpr const char* name = "degraded";
  static constexpr int keys = 2;
  static constexpr std::tuple columns{Reference{"cut", &DegradedRow::cut},
                                      Column{"number", &DegradedRow::number},
                                      Reference{"sentence", &DegradedRow::sentence}};
};

// Cut::labels
struct TagRow {
  Id cut = 0;
  std::string tag;
  std::string value;
};
template <>
struct Table<TagRow> {
  static constexpr const char* name = "tags";
  static constexpr int keys = 2;
  static constexpr std::tuple columns{Reference{"cut", &TagRow::cut}, Column{"tag", &TagRow::tag},
                                      Column{"value", &TagRow::value}};
};

// What is kept once for all cuts, and what each cut has.
struct ContentRows {
  std::vector<StringRow> strings;
  std::vector<MappingRow> mappings;
  std::vector<FrameRow> frames;
  std::vector<StackRow> stacks;
  std::vector<LabelRow> labels;
  std::vector<ClientRow> clients;
  std::vector<WakeupRow> wakeups;
};
struct CutRows {
  CutRow cut;
  std::vector<ChargeRow> charges;
  std::vector<RequestRow> requests;
  std::vector<ThreadRow> threads;
  std::vector<FigureRow> figures;
  std::vector<DegradedRow> degraded;
  std::vector<TagRow> tags;
};

// Calls `with` for each table: with(rows.strings), and so on.
template <typename Rows, typename With>
void each_content_table(Rows&& rows, With with) {
  with(rows.strings);
  with(rows.mappings);
  with(rows.frames);
  with(rows.stacks);
  with(rows.labels);
  with(rows.clients);
  with(rows.wakeups);
}
template <typename Rows, typename With>
void each_table_of_cuts(Rows&& rows, With with) {
  with(rows.charges);
  with(rows.requests);
  with(rows.threads);
  with(rows.figures);
  with(rows.degraded);
  with(rows.tags);
}

template <typename Row, typename With>
constexpr void each_column(With with) {
  std::apply([&](const auto&... column) { (with(column), ...); }, Table<Row>::columns);
}

}  // namespace pkprof::store
