// SPDX-License-Identifier: Apache-2.0
// What `export --to gmon` writes, as GNU gprof reads it: every file with exit 0 and no word on
// stderr, and with the figures of our own listings.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "export/formats.h"
#include "export/gmon/files.h"
#include "golden.h"
#include "gprof.h"
#include "model/gmon.h"
#include "random_profile.h"
#include "report/clean.h"
#include "report/clients.h"
#include "report/listing/listing.h"
#include "report_fixture.h"
#include "served_fixture.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;
using test::Gprof;
using test::GprofRow;
using test::run_gprof;

// gprof's own rounding of the shares that it prints, and the same of ours.
constexpr double rounding = 0.011;

class GmonExportTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (fs::temp_directory_path() / "pkprof-export-XXXXXX").string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string write(const Profile& profile, std::vector<uint32_t> pids = {}) {
    const auto text =
        export_format("gmon")->write(profile, {.output = directory_, .pids = std::move(pids)});
    EXPECT_TRUE(text) << text.error().message;
    return text.value_or("");
  }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_))
      found.insert(entry.path().filename().string());
    return found;
  }
  // "137k.cat" is read with gmon.sym.137.cat.
  [[nodiscard]] Gprof read(const std::string& suffix) const {
    std::string of = suffix;
    const size_t dot = of.find('.');
    if (dot != std::string::npos && dot > 0 && !of.starts_with('-') &&
        (of[dot - 1] == 'k' || of[dot - 1] == 'u'))
      of.erase(dot - 1, 1);
    return run_gprof(file("gmon.sym." + of), {file("gmon.out." + suffix)});
  }
  [[nodiscard]] std::map<std::string, Gprof> read_all() const {
    std::map<std::string, Gprof> read_files;
    for (const std::string& name : names()) {
      if (!name.starts_with("gmon.out.")) continue;
      const std::string suffix = name.substr(9);
      const Gprof gprof = read(suffix);
      EXPECT_EQ(gprof.status, 0) << name << "\n" << gprof.err;
      EXPECT_EQ(gprof.err, "") << name;
      EXPECT_FALSE(gprof.flat.empty()) << name << "\n" << gprof.out;
      read_files[suffix] = gprof;
    }
    return read_files;
  }

  std::string directory_;
};

// What a function is called in files for gprof. Time without functions has several names there.
std::string name_of(const Listing& listing, CallNodeId id) {
  const Function* const function = listing.function(id);
  if (function == nullptr) return "[none]";
  const std::string raw = listing.raw_name(id);
  if (function->named || function->where.empty()) return clean(raw);
  return clean(raw.substr(0, raw.find(':') + 1)) + "[unknown in " + clean(function->where) + "]";
}

std::map<std::string, double> shares_of(const Profile& profile, const ReportOptions& options) {
  const Listing listing = listing_of(profile, options, ListingKind::flat);
  std::map<std::string, double> shares;
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id) {
    const uint64_t ns = listing.graph().nodes[id].self_ns;
    if (ns == 0) continue;
    shares[name_of(listing, id)] +=
        100 * static_cast<double>(ns) / static_cast<double>(listing.busy().busy_ns);
  }
  return shares;
}

std::map<std::string, double> shares_of(const Gprof& gprof) {
  std::map<std::string, double> shares;
  for (const auto& [name, percent] : gprof.percent_of()) {
    const bool none = name.ends_with("[no stack]") || name.ends_with("[code of other processes]");
    if (percent != 0) shares[none ? "[none]" : name] += percent;
  }
  return shares;
}

void expect_shares(const std::map<std::string, double>& got,
                   const std::map<std::string, double>& want) {
  for (const auto& [name, percent] : want) {
    if (percent < rounding) continue;
    const auto it = got.find(name);
    if (it == got.end())
      ADD_FAILURE() << name << " is not there";
    else
      EXPECT_NEAR(it->second, percent, rounding) << name;
  }
  for (const auto& [name, percent] : got)
    EXPECT_TRUE(want.contains(name)) << name << " is there: " << percent;
}

TEST_F(GmonExportTest, WritesTheFilesOfThePaper) {
  write(test::small_machine(), {812});
  const std::set<std::string> want = {
      "gmon.out.812.nginx",    "gmon.out.812u.nginx",   "gmon.out.812k.nginx", "gmon.sym.812.nginx",
      "gmon.out.-k.kernel",    "gmon.sym.-k.kernel",    "gmon.out.-k.other",   "gmon.sym.-k.other",
      "gmon.out.-k.unclaimed", "gmon.sym.-k.unclaimed", "gmon.out.all",        "gmon.sym.all"};
  EXPECT_EQ(names(), want);
}

TEST_F(GmonExportTest, TheMergedFlatProfileIsOurs) {
  const Profile profile = test::small_machine();
  write(profile);
  const std::map<std::string, Gprof> files = read_all();
  EXPECT_GT(files.size(), 10U);
  expect_shares(shares_of(files.at("all")), shares_of(profile, {.apart = true}));
  expect_shares(shares_of(files.at("812.nginx")), shares_of(profile, {.pids = {812}}));
}

TEST_F(GmonExportTest, SaysWhatItWrote) {
  const std::string text = write(test::small_machine());
  test::expect_harmless(text, 200);
  test::expect_golden("export-gmon.txt", text);
}

// What is in the file of both is in those of either side.
TEST_F(GmonExportTest, TheSidesAddUp) {
  write(test::small_machine());
  const auto seconds = [](const Gprof& gprof) {
    std::map<std::string, double> sums;
    for (const GprofRow& row : gprof.flat) sums[row.name] += row.self_seconds;
    return sums;
  };
  std::map<std::string, double> sides = seconds(read("812u.nginx"));
  ASSERT_FALSE(sides.empty());
  for (const auto& [name, s] : sides) EXPECT_TRUE(name.starts_with("812u:")) << name;
  const auto kernel = seconds(read("812k.nginx"));
  ASSERT_FALSE(kernel.empty());
  for (const auto& [name, s] : kernel) EXPECT_TRUE(name.starts_with("812k:")) << name;
  sides.insert(kernel.begin(), kernel.end());
  EXPECT_EQ(sides, seconds(read("812.nginx")));
}

// Any files of one export with the symbols of the whole: a client and its server.
TEST_F(GmonExportTest, SeveralAreRead) {
  write(test::small_machine());
  const Gprof both = run_gprof(file("gmon.sym.all"),
                               {file("gmon.out.812.nginx"), file("gmon.out.900.redis-server")});
  EXPECT_EQ(both.status, 0);
  EXPECT_EQ(both.err, "");
  double nginx = 0;
  double redis = 0;
  for (const GprofRow& row : both.flat) {
    if (row.name.starts_with("812")) nginx += row.self_seconds;
    if (row.name.starts_with("900")) redis += row.self_seconds;
  }
  EXPECT_NEAR(nginx, 5.43, rounding);
  EXPECT_NEAR(redis, 0.815, rounding);  // 400 + 40 + 350 + 25 ms
}

// gprof divides a function's time among its callers by the counts of calls.
TEST_F(GmonExportTest, TheCallGraphIsOurs) {
  for (const Profile& profile : {test::small_machine(), test::called_machine()}) {
    write(profile);
    const Gprof gprof = read("all");
    const Listing listing =
        listing_of(profile, {.apart = true, .threshold = 0}, ListingKind::graph);
    const CallGraph& graph = listing.graph();
    std::map<std::string, double> want;
    for (CallNodeId id = 0; id < graph.nodes.size(); ++id) {
      // Of one name several: of the same name in other parts, or without one.
      const std::string name = name_of(listing, id);
      const CallNode& node = graph.nodes[id];
      if (node.function == no_function || node.cycle != no_cycle || name.starts_with("-")) continue;
      want[name] += static_cast<double>(node.total_ns) / 1e9;
    }
    std::map<std::string, double> got;
    for (const GprofRow& row : gprof.graph) {
      if (!row.in_cycle) got[row.name] += row.self_seconds + row.child_seconds;
    }
    ASSERT_GT(want.size(), 8U);
    for (const auto& [name, seconds] : want) {
      if (seconds >= rounding) {
        EXPECT_NEAR(got[name], seconds, 2 * rounding) << name << "\n" << gprof.out;
      }
    }
  }
}

TEST_F(GmonExportTest, CallsThatWereCountedAreCalls) {
  write(test::called_machine());
  const Gprof gprof = read("42k.parser");
  std::map<std::string, uint64_t> calls;
  for (const GprofRow& row : gprof.flat) calls[row.name] = row.calls.value_or(0);
  EXPECT_EQ(calls["42k:vring_interrupt"], 540U);
  EXPECT_EQ(calls["42k:hrtimer_interrupt"], 1000U);
  EXPECT_EQ(calls["42k:exc_page_fault"], 100'000U);  // 100 ms in microseconds
}

// Hours on many CPUs: counters of 16 bits must not run over, nor gprof's own.
TEST_F(GmonExportTest, ManyHours) {
  Profile profile;
  constexpr uint64_t hour = 3'600'000'000'000;
  profile.meta = {.cpus = 64, .duration_ns = 8 * hour};
  const LabelId label =
      profile.label({.kind = LabelKind::process, .pid = 7, .start_ns = 1, .comm = "long"});
  const MappingId binary = profile.mapping({0, 0x10000, 0, "/bin/long", ""});
  const auto stack = [&](const std::vector<const char*>& leaf_first) {
    std::vector<FrameId> frames;
    frames.reserve(leaf_first.size());
    for (const char* const name : leaf_first) {
      frames.push_back(profile.frame({FrameKind::user, binary, 16 * (frames.size() + 1) + name[0],
                                      profile.string(name), 0, 0}));
    }
    return profile.stack(frames);
  };
  const auto add = [&](const std::vector<const char*>& leaf_first, uint64_t ns) {
    profile.add({label, label, profile.string("user"), Basis::own, stack(leaf_first)},
                {.count = 1, .ns = ns});
  };
  add({"most", "main"}, 400 * hour);
  add({"some", "main"}, 100 * hour);
  add({"rest", "other", "main"}, 5 * hour);
  add({"rest", "main"}, 7 * hour);
  write(profile);
  const std::map<std::string, Gprof> files = read_all();
  std::map<std::string, double> seconds;
  for (const GprofRow& row : files.at("all").flat) seconds[row.name] = row.self_seconds;
  EXPECT_NEAR(seconds["7u:most"], 400 * 3600.0, 0.02);
  EXPECT_NEAR(seconds["7u:some"], 100 * 3600.0, 0.02);
  EXPECT_NEAR(seconds["7u:rest"], 12 * 3600.0, 0.02);
  for (const GprofRow& row : files.at("all").graph) {
    if (row.name == "7u:other") {
      EXPECT_NEAR(row.child_seconds, 5 * 3600.0, 1);
    }
  }
  EXPECT_LT(fs::file_size(file("gmon.out.all")), 2U << 20);
}

// Names with colons, spaces, dots, brackets and worse; and processes that a file cannot be named
// for.
TEST_F(GmonExportTest, NamesSurvive) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 1'000'000'000};
  const std::vector<std::string> functions = {
      "std::map<int, std::vector<long> >::operator[](int const&)",
      "operator delete(void*)",
      "compute.part.0",
      "L$1.loop",
      ".hidden",
      "memcpy@plt",
      "_ZN3foo3barEv",
      "<alloc::vec::Vec<T,A> as core::ops::Drop>::drop",
      "mcount",
      "_mcount",
      "__gnu_compiled_c",
      "m\xc3\xbcsli",
      "two\nlines\x1b[2J"};
  const MappingId binary = profile.mapping({0, 0x10000, 0, "/bin/x", ""});
  for (const char* const comm : {"../../etc/x", "a b", "_ZN3foo3barEv", "\x1b[2J\xff"}) {
    static uint32_t pid = 10;
    const LabelId label =
        profile.label({.kind = LabelKind::process, .pid = ++pid, .start_ns = 1, .comm = comm});
    for (size_t i = 0; i < functions.size(); ++i) {
      const FrameId frame = profile.frame(
          {FrameKind::user, binary, 16 * (i + 1), profile.string(functions[i]), 0, 0});
      profile.add({label, label, profile.string("user"), Basis::own, profile.stack({&frame, 1})},
                  {.count = 1, .ns = 10'000'000});
    }
  }
  write(profile);
  EXPECT_TRUE(names().contains("gmon.out.11..._.._etc_x"));
  EXPECT_TRUE(names().contains("gmon.out.12.a_b"));
  EXPECT_TRUE(names().contains("gmon.out.14.__2J_"));
  EXPECT_FALSE(read_all().empty());
  const std::map<std::string, double> shares = read("12.a_b").percent_of();
  EXPECT_EQ(shares.size(), functions.size());
  for (const std::string& name : functions)
    EXPECT_NEAR(shares.contains("12u:" + clean(name)) ? shares.at("12u:" + clean(name)) : 0,
                100.0 / static_cast<double>(functions.size()), rounding)
        << clean(name);
}

TEST_F(GmonExportTest, ProcessesOfOneNameHaveFilesOfTheirOwn) {
  write(test::small_machine());
  // Two of pid 900, one after the other.
  EXPECT_TRUE(names().contains("gmon.out.900.redis-server"));
  EXPECT_TRUE(names().contains("gmon.out.900.redis-server.2"));
}

// Those of several programs that have ended are told apart as the listing tells them.
TEST_F(GmonExportTest, EndedProcessesAreNamedByTheirProgram) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 1'000'000'000};
  const MappingId kernel = profile.mapping({1, 2, 0, "[kernel.kallsyms]", ""});
  const FrameId frame =
      profile.frame({FrameKind::kernel, kernel, 1, profile.string("vfs_read"), 0, 0});
  for (const char* const comm : {"sh", "k:worker"}) {
    const LabelId label = profile.label({.kind = LabelKind::process,
                                         .pid = 0,
                                         .start_ns = static_cast<uint64_t>(comm[0]),
                                         .comm = comm});
    profile.add(
        {label, label, profile.string("syscall:read"), Basis::own, profile.stack({&frame, 1})},
        {.count = 1, .ns = 10'000'000});
  }
  write(profile);
  EXPECT_TRUE(names().contains("gmon.out.ended.sh"));
  expect_shares(shares_of(read("all")), shares_of(profile, {.apart = true}));
  const Result<GmonSource> source = read_gmon_file(file("gmon.out.all"));
  ASSERT_TRUE(source) << source.error().message;
  const Listing listing(gmon_listing({&*source, 1}).value(), true);
  std::set<std::string> found;
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id)
    found.insert(listing.name_alone(id));
  EXPECT_EQ(found, (std::set<std::string>{"vfs_read", "sh[ended]", "k:worker[ended]"}));
}

TEST_F(GmonExportTest, AnythingIsRead) {
  for (uint64_t seed = 1; seed < 12; ++seed) {
    const Profile profile = test::random_profile(seed, 1 + seed % 7);
    const auto text = export_format("gmon")->write(profile, {.output = directory_, .pids = {}});
    if (text) {
      EXPECT_FALSE(read_all().empty());
    } else {
      EXPECT_NE(text.error().message.find("nothing"), std::string::npos) << text.error().message;
    }
    for (const std::string& name : names()) fs::remove(file(name));
  }
}

// A client's file has its servers' code.
TEST_F(GmonExportTest, ClientsHaveTheirServersTime) {
  const Profile charged = charged_to_clients(test::ServedMachine().profile);
  write(charged);
  const std::map<std::string, Gprof> files = read_all();
  expect_shares(shares_of(files.at("100.browser")), shares_of(charged, {.pids = {100}}));
  expect_shares(shares_of(files.at("200.nginx")), shares_of(charged, {.pids = {200}}));
  std::map<std::string, double> seconds;
  for (const GprofRow& row : files.at("100.browser").graph)
    seconds[row.name] += row.self_seconds + row.child_seconds;
  EXPECT_NEAR(seconds["browser[100]"], 0.695, rounding);
  EXPECT_NEAR(seconds["100k:served by nginx:200"], 0.3, rounding);
  EXPECT_NEAR(seconds["100>200k:syscall:read"], 0.1, rounding);
  EXPECT_NEAR(seconds["100>300u:exec_query"], 0.3, rounding);
  EXPECT_NEAR(seconds["100u:main"], 0.05, rounding);
  EXPECT_NEAR(read("remoteu.192.0.2.7").percent_of().at("192.0.2.7>200u:serve"), 100, rounding);
  EXPECT_EQ(read("100u.browser").percent_of().count("100>200u:serve"), 1U);
}

// What the files say is what the profile does.
TEST_F(GmonExportTest, ClientsAreListedFromTheFiles) {
  write(charged_to_clients(test::ServedMachine().profile));
  const Result<GmonSource> source = read_gmon_file(file("gmon.out.100.browser"));
  ASSERT_TRUE(source) << source.error().message;
  const Listing listing(gmon_listing({&*source, 1}).value(), false);
  std::map<std::string, uint64_t> totals;
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id)
    totals[listing.name(id)] += listing.graph().nodes[id].total_ns;
  EXPECT_EQ(totals["100k:<served by postgres:300>"], 330'000'000U);
  EXPECT_EQ(totals["100>300k:<softirq:NET_RX>"], 30'000'000U);
  EXPECT_EQ(totals["100>200u:main"], 300'000'000U);
  EXPECT_EQ(totals["100u:main"], 50'000'000U);
}

TEST_F(GmonExportTest, SaysWhatItCannotDo) {
  const auto nothing = export_format("gmon")->write(Profile(), {.output = directory_, .pids = {}});
  ASSERT_FALSE(nothing);
  const auto nowhere = export_format("gmon")->write(
      test::small_machine(), {.output = directory_ + "/no/such", .pids = {}});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("no/such"), std::string::npos);
  EXPECT_EQ(export_format("nonsense"), nullptr);
}

}  // namespace
}  // namespace pkprof
