// SPDX-License-Identifier: Apache-2.0
// Listings of gmon.out files. What a program compiled with -pg wrote is listed as gprof lists it;
// what pkprof wrote for gprof comes back as it was; and the calls of the one are joined to the
// other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "export/formats.h"
#include "export/gmon/files.h"
#include "golden.h"
#include "gprof.h"
#include "report/listing/flat_text.h"
#include "report/listing/gmon_listing.h"
#include "report/listing/graph_text.h"
#include "report/listing/program_calls.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;
using test::Gprof;
using test::GprofRow;
using test::run_gprof;

// Two cycles, one function that calls itself, one with several callers that cost it differently.
constexpr const char* program_text = R"(
volatile long sink;
#ifdef OTHER
#define TEN(x) x x x x x x x x x x
int before(int n) { TEN(TEN(n = 3 * n + 1; n ^= 5;)) return n; }
#endif
__attribute__((noinline)) void burn(int n) { for (long i = 0; i < n * 20000L; ++i) sink += i; }
void odd(int n);
void even(int n) { burn(3); if (n > 0) odd(n - 1); }
void odd(int n) { if (n > 0) even(n - 1); }
void again(int n) { if (n > 0) again(n - 1); else burn(50); }
void three(int n);
void two(int n) { if (n > 0) three(n - 1); burn(10); }
void one(int n) { if (n > 0) two(n - 1); burn(5); }
void three(int n) { if (n > 0) one(n - 1); if (n > 5) two(n - 2); }
void outer(void) { even(20); burn(30); again(10); }
int main(void) { for (int i = 0; i < 30; ++i) outer(); odd(9); one(12); burn(1); return 0; }
)";

class GmonListingTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (fs::temp_directory_path() / "pkprof-gmon-XXXXXX").string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(directory_); }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }

  void run_program(const char* flags) const {
    std::ofstream(file("known.c")) << program_text;
    const std::string command =
        "cd '" + directory_ + "' && gcc-12 -pg -O0 " + flags + " -o known known.c 2>&1 && ./known";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  // One long function is where the functions of the first begin. In a large program, as this one
  // is, some may begin there.
  void build_another() const {
    const std::string command =
        "cd '" + directory_ + "' && gcc-12 -pg -O0 -no-pie -DOTHER -o other known.c 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void write(const Profile& profile) const {
    const auto text = export_format("gmon")->write(profile, {.output = directory_, .pids = {}});
    ASSERT_TRUE(text) << text.error().message;
  }

  std::string directory_;
};

ListingData listing(const Result<GmonSource>& source) {
  EXPECT_TRUE(source) << source.error().message;
  if (!source) return {};
  Result<ListingData> data = gmon_listing({&*source, 1});
  EXPECT_TRUE(data) << data.error().message;
  return data ? std::move(*data) : ListingData();
}

double seconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// Of functions that are in no cycle.
struct Times {
  double self = 0;
  double below = 0;
  uint64_t calls = 0;
};
std::map<std::string, Times> times_of(const ListingData& data) {
  std::map<std::string, Times> times;
  for (const CallNode& node : data.graph.nodes) {
    if (node.function == no_function || node.cycle != no_cycle) continue;
    times[data.functions[node.function].name] = {seconds(node.self_ns),
                                                 seconds(node.total_ns - node.self_ns), node.calls};
  }
  return times;
}

TEST_F(GmonListingTest, OfAProgramIsGprofs) {
  for (const char* const flags : {"-no-pie", "-pie -fPIE"}) {
    run_program(flags);
    const Gprof gprof = run_gprof(file("known"), {file("gmon.out")});
    ASSERT_EQ(gprof.status, 0) << gprof.err;
    const ListingData data =
        listing(read_program_gmon(file("gmon.out"), {.pid = 9, .exe = file("known")}));
    std::map<std::string, Times> ours = times_of(data);
    size_t compared = 0;
    for (const GprofRow& row : gprof.graph) {
      if (row.in_cycle || row.name.starts_with('<')) continue;
      ++compared;
      EXPECT_NEAR(ours[row.name].self, row.self_seconds, 0.0051) << row.name << gprof.out;
      EXPECT_NEAR(ours[row.name].below, row.child_seconds, 0.0051) << row.name << gprof.out;
      EXPECT_EQ(ours[row.name].calls, row.calls.value_or(0)) << row.name;
    }
    EXPECT_GE(compared, 4U) << gprof.out;  // main, outer, again, burn
    ASSERT_EQ(data.graph.cycles.size(), 2U);
    std::map<std::string, double> theirs;  // of the cycles as a whole
    std::vector<double> cycles;
    for (const GprofRow& row : gprof.graph) {
      if (row.name.starts_with("<cycle")) cycles.push_back(row.self_seconds + row.child_seconds);
    }
    ASSERT_EQ(cycles.size(), 2U) << gprof.out;
    std::ranges::sort(cycles, std::greater());
    EXPECT_NEAR(seconds(data.graph.cycles[0].total_ns), cycles[0], 0.0101) << gprof.out;
    EXPECT_NEAR(seconds(data.graph.cycles[1].total_ns), cycles[1], 0.0101) << gprof.out;
  }
}

TEST_F(GmonListingTest, OfAnotherProgramIsRefused) {
  run_program("-no-pie");
  build_another();
  const Result<GmonSource> other =
      read_program_gmon(file("gmon.out"), {.pid = 9, .exe = file("other")});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("its calls are not those of"), std::string::npos)
      << other.error().message;
  const Result<GmonSource> none =
      read_program_gmon(file("gmon.out"), {.pid = 9, .exe = file("known.c")});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("not an ELF file"), std::string::npos)
      << none.error().message;
}

TEST_F(GmonListingTest, AProgramsFileIsFoundWhereItFits) {
  run_program("-no-pie");
  build_another();
  const GmonProgram program{.pid = 9, .exe = file("known")};
  const auto now = static_cast<uint64_t>(time(nullptr)) * 1'000'000'000;
  constexpr uint64_t hour = 3'600'000'000'000;
  EXPECT_TRUE(find_program_gmon(directory_, program, now - hour));
  EXPECT_FALSE(find_program_gmon(directory_, program, now + hour));  // it is of an earlier run
  EXPECT_FALSE(find_program_gmon(directory_, {.pid = 9, .exe = file("other")}, now - hour));
  fs::rename(file("gmon.out"), file("gmon.out.9"));
  EXPECT_TRUE(find_program_gmon(directory_, program, now - hour));
  EXPECT_FALSE(find_program_gmon(directory_, {.pid = 8, .exe = file("known")}, now - hour));
}

// By name, as several may have one; time without a stack has a name of its own in the files.
std::map<std::string, std::pair<uint64_t, uint64_t>> named_times(const Listing& listing) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> times;
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id) {
    const CallNode& node = listing.graph().nodes[id];
    const std::string name = listing.name(id);
    if (node.function == no_function || name.starts_with('-') || name.ends_with("[no stack]"))
      continue;
    times[name].first += node.self_ns;
    if (node.cycle == no_cycle) times[name].second += node.total_ns;
  }
  return times;
}

TEST_F(GmonListingTest, WhatWasWrittenComesBack) {
  for (const Profile& profile : {test::small_machine(), test::called_machine()}) {
    write(profile);
    const ListingData data = listing(read_gmon_file(file("gmon.out.all")));
    const ReportOptions apart{.apart = true, .threshold = 0};
    const auto want = named_times(listing_of(profile, apart, ListingKind::graph));
    const auto got = named_times(Listing(data, true));
    ASSERT_GT(want.size(), 8U);
    constexpr double ticks = 5'000;  // ns; a function is called in some ways, each rounded to 1 us
    for (const auto& [name, ns] : want) {
      ASSERT_TRUE(got.contains(name)) << name;
      EXPECT_NEAR(static_cast<double>(got.at(name).first), static_cast<double>(ns.first), ticks)
          << name;
      // Whose calls were counted, its time is divided by these.
      if (name.starts_with("42k:«irq:")) continue;
      EXPECT_NEAR(static_cast<double>(got.at(name).second), static_cast<double>(ns.second), ticks)
          << name;
    }
    EXPECT_EQ(data.busy.cpu_ns, profile.cpu_ns());
    uint64_t sum = data.busy.busy_ns;
    for (const ListingData::Rest& rest : data.rest) sum += rest.ns;
    EXPECT_GE(sum, profile.cpu_ns());
    const Busy busy = busy_time(profile, {});
    EXPECT_EQ(data.busy.unsampled_ns, busy.unsampled_ns);
    EXPECT_EQ(data.busy.steal_ns, busy.steal_ns);
    EXPECT_EQ(data.busy.watched, busy.watched);
    EXPECT_LT(data.busy.left_out_ns, 100'000U);  // ticks: these files have it all
  }
}

TEST_F(GmonListingTest, Looks) {
  write(test::called_machine());
  const Listing listed(listing(read_gmon_file(file("gmon.out.42.parser"))), true);
  test::expect_golden("gmon-flat.txt", flat_text_of(listed, {}));
  test::expect_golden("gmon-graph.txt", graph_text_of(listed, {}));
}

TEST_F(GmonListingTest, CallsComeBackAsCalls) {
  write(test::called_machine());
  const ListingData data = listing(read_gmon_file(file("gmon.out.42.parser")));
  const Listing named(data, true);
  std::map<std::string, const CallNode*> nodes;
  for (CallNodeId id = 0; id < data.graph.nodes.size(); ++id)
    nodes[named.name(id)] = &data.graph.nodes[id];
  ASSERT_TRUE(nodes.contains("42k:vring_interrupt"));
  EXPECT_EQ(nodes["42k:vring_interrupt"]->calls, 540U);
  EXPECT_TRUE(nodes["42k:vring_interrupt"]->all_calls_counted);
  EXPECT_FALSE(nodes["42u:main"]->all_calls_counted);
}

TEST_F(GmonListingTest, DamagedFilesAreRefused) {
  write(test::small_machine());
  const auto read = [&] { return read_gmon_file(file("gmon.out.all")); };
  const auto contents = [&](const char* name) {
    std::ifstream in(file(name), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string symbols = contents("gmon.sym.all");
  ASSERT_TRUE(read());
  for (const size_t size : {size_t{0}, size_t{3}, size_t{64}, symbols.size() / 2}) {
    std::ofstream(file("gmon.sym.all"), std::ios::binary) << symbols.substr(0, size);
    EXPECT_FALSE(read()) << size;
  }
  fs::remove(file("gmon.sym.all"));
  EXPECT_FALSE(read());
  // Of one part the symbols, of another the records: addresses that nobody has.
  fs::copy(file("gmon.sym.812.nginx"), file("gmon.sym.all"));
  const Result<GmonSource> mixed = read();
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_TRUE(gmon_listing({&*mixed, 1}));
  fs::copy("/proc/self/exe", file("gmon.sym.x"));
  fs::copy(file("gmon.out.all"), file("gmon.out.x"));
  EXPECT_FALSE(read_gmon_file(file("gmon.out.x")));
}

GmonSource source_of(Gmon gmon) {
  return {.path = "x",
          .gmon = std::move(gmon),
          .functions = {{0x1000, 0x1010, "first"}, {0x1010, 0x1020, "second"}},
          .about = {},
          .whose = "9",
          .where = "known"};
}

TEST(GmonTimes, ACounterOfTwoFunctionsIsDivided) {
  const GmonSource source = source_of(
      {.histograms = {{.low = 0x1008, .high = 0x1018, .rate = 10, .counts = {0, 0}}}, .arcs = {}});
  GmonSource one = source;
  one.gmon.histograms[0].counts = {40};  // 4 s, of 8 bytes each
  const ListingData data = gmon_listing({&one, 1}).value();
  ASSERT_EQ(data.graph.nodes.size(), 2U);
  EXPECT_EQ(data.graph.nodes[0].self_ns, 2'000'000'000U);
  EXPECT_EQ(data.graph.nodes[1].self_ns, 2'000'000'000U);
  EXPECT_TRUE(gmon_listing({&source, 1}).value().graph.nodes.empty());
}

TEST(GmonTimes, SaysWhatIsWrong) {
  const auto why = [](std::vector<GmonHistogram> histograms) {
    const GmonSource source = source_of({.histograms = std::move(histograms), .arcs = {}});
    const Result<ListingData> data = gmon_listing({&source, 1});
    return data ? "" : data.error().message;
  };
  const GmonHistogram good{.low = 0x1000, .high = 0x1020, .rate = 100, .counts = {1, 2}};
  EXPECT_EQ(why({good, good}), "");
  GmonHistogram shifted = good;
  shifted.low += 8;
  EXPECT_EQ(why({good, shifted}), "x: two histograms overlap");
  GmonHistogram other = good;
  other.dimension = "bytes";
  EXPECT_EQ(why({other}), "x: a histogram is not of time");
  GmonHistogram finer = good;
  finer.counts = {1, 2, 3};
  EXPECT_EQ(why({good, finer}), "x: two histograms overlap");
}

// A profile of the program whose calls are known, with one stack in which a caller is missing.
Profile profile_of_known(bool with_user_time) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 1'000'000'000};
  const LabelId label =
      profile.label({.kind = LabelKind::process, .pid = 9, .start_ns = 1, .comm = "known"});
  const MappingId binary = profile.mapping({0, 0x10000, 0, "/bin/known", ""});
  const MappingId libc = profile.mapping({0x20000, 0x30000, 0, "/lib/libc.so.6", ""});
  const auto frame = [&](const char* name, MappingId mapping, uint64_t at) {
    return profile.frame({FrameKind::user, mapping, at, profile.string(name), 0, 0});
  };
  const FrameId start = frame("start", libc, 0x20000);
  const FrameId sort = frame("qsort", libc, 0x20100);
  const FrameId main = frame("main", binary, 1);
  const FrameId outer = frame("outer", binary, 2);
  const FrameId burn = frame("burn", binary, 3);
  const FrameId compare = frame("compare", binary, 4);
  const FrameId call =
      profile.frame({FrameKind::pseudo, no_mapping, 0, profile.string("syscall:read"), 0, 0});
  const auto add = [&](std::vector<FrameId> leaf_first, const char* source, uint64_t milliseconds) {
    profile.add({label, label, profile.string(source), Basis::own, profile.stack(leaf_first)},
                {.count = milliseconds, .ns = milliseconds * 1'000'000});
  };
  add({call}, "syscall:read", 100);
  if (!with_user_time) return profile;
  add({burn, outer, main, start}, "user", 300);
  add({burn, main, start}, "user", 90);
  add({burn, start}, "user", 10);  // before it had a frame of its own
  add({compare, sort, main, start}, "user", 50);
  return profile;
}

Gmon calls_of_known() {
  return {.histograms = {{.low = 0x1000, .high = 0x1050, .rate = 100, .counts = {0, 2, 38, 5, 0}}},
          .arcs = {{0x1004, 0x1010, 3},
                   {0x1014, 0x1020, 12},
                   {0x1004, 0x1020, 4},
                   {0x1034, 0x1030, 7},
                   {0x1004, 0x1040, 1}}};
}

GmonSource program_of_known() {
  GmonSource source = source_of(calls_of_known());
  source.functions = {{0x1000, 0x1010, "main"},
                      {0x1010, 0x1020, "outer"},
                      {0x1020, 0x1030, "burn"},
                      {0x1030, 0x1040, "compare"},
                      {0x1040, 0x1050, "brief"}};
  return source;
}

struct Joined {
  ListingData data;
  ProgramCalls done;
  std::map<std::string, CallNode> nodes;
};
Joined join(bool with_user_time) {
  Joined joined;
  const ReportOptions of_one{.pids = {9}, .threshold = 0};
  joined.data = listing_data_of(profile_of_known(with_user_time), of_one, ListingKind::graph);
  const GmonSource source = program_of_known();
  joined.done = add_program_calls(joined.data, gmon_listing({&source, 1}).value(), "9");
  const Listing named(joined.data, true);
  for (CallNodeId id = 0; id < joined.data.graph.nodes.size(); ++id)
    joined.nodes[named.name(id)] = joined.data.graph.nodes[id];
  return joined;
}

TEST(ProgramCalls, AreJoinedToTheTimesOfTheSamples) {
  Joined joined = join(true);
  EXPECT_EQ(joined.done.calls, 27U);
  EXPECT_FALSE(joined.done.times_too);
  EXPECT_EQ(joined.done.self_ns, 450'000'000U);
  EXPECT_EQ(joined.data.busy.busy_ns, 550'000'000U);  // nothing twice
  EXPECT_EQ(joined.nodes["9u:burn"].self_ns, 400'000'000U);
  EXPECT_EQ(joined.nodes["9u:burn"].calls, 16U);
  EXPECT_TRUE(joined.nodes["9u:burn"].all_calls_counted);
  EXPECT_EQ(joined.nodes["9u:outer"].calls, 3U);
  EXPECT_TRUE(joined.nodes["9u:outer"].all_calls_counted);
  EXPECT_FALSE(joined.nodes["9u:main"].all_calls_counted);
  // qsort's calls of it nobody counted.
  EXPECT_FALSE(joined.nodes["9u:compare"].all_calls_counted);
  // No sample was in it, but it was called.
  EXPECT_EQ(joined.nodes["9u:brief"].calls, 1U);
  EXPECT_EQ(joined.nodes["9u:brief"].total_ns, 0U);
}

TEST(ProgramCalls, TimesWhereThereAreNone) {
  Joined joined = join(false);
  EXPECT_TRUE(joined.done.times_too);
  EXPECT_EQ(joined.nodes["9u:burn"].self_ns, 380'000'000U);
  EXPECT_EQ(joined.nodes["9u:outer"].total_ns, 305'000'000U);  // 20 + 12/16 of 380
  EXPECT_EQ(joined.nodes["9u:main"].total_ns, 400'000'000U);
  EXPECT_EQ(joined.data.busy.busy_ns, 550'000'000U);
}

}  // namespace
}  // namespace pkprof
