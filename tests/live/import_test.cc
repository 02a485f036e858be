// SPDX-License-Identifier: Apache-2.0
// What perf recorded, seen with our views: the times are those that perf's own report has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

// Periods by comm, as `perf report` sums them up.
std::map<std::string, uint64_t> perfs_own(const std::string& perf, const std::string& data) {
  const Finished done = run_program({perf, "report", "-i", data, "--stdio", "--no-children", "-g",
                                     "none", "-F", "period,comm", "-t", ","});
  EXPECT_EQ(done.status, 0) << done.err;
  std::map<std::string, uint64_t> periods;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) {
    const size_t comma = line.find(',');
    if (line.starts_with('#') || comma == std::string::npos) continue;
    std::string comm = line.substr(comma + 1);
    comm.erase(comm.find_last_not_of(' ') + 1);
    periods[comm] += std::strtoull(line.c_str(), nullptr, 10);
  }
  return periods;
}

TEST(ImportTest, TimesArePerfsOwn) {
  skip_unless_able();
  const std::string perf = find_program("perf");
  if (perf.empty()) GTEST_SKIP() << "needs perf";
  const Turn turn;
  const TempDir dir;
  const std::string data = dir.file("perf.data");
  Stage stage;
  stage.start_hog(0);
  const Finished recorded = run_program({perf, "record", "-q", "-e", "cpu-clock", "-F", "997", "-a",
                                         "-g", "-o", data, "--", "sleep", "2"});
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  const Finished text = run_program(
      {"sh", "-c", perf + " script --header -F +pid -i " + data + " > " + dir.file("script")});
  ASSERT_EQ(text.status, 0) << text.err;
  const std::string profile = dir.file("profile");
  const Finished imported = run_pkprof({"import", dir.file("script"), "-o", profile});
  ASSERT_EQ(imported.status, 0) << imported.err;
  const json report = json::parse(run_pkprof({"report", "--json", profile}).out);

  const auto theirs = perfs_own(perf, data);
  ASSERT_TRUE(theirs.contains("pk_hog")) << recorded.err;
  std::map<std::string, uint64_t> ours;  // who was on the CPU
  for (const json& flow : report.at("flows")) {
    if (!flow.at("ran_on").is_number()) continue;
    for (const json& process : report.at("processes"))
      if (process.at("pid") == flow.at("ran_on"))
        ours[process.at("comm")] += flow.at("ns").get<uint64_t>();
  }
  EXPECT_EQ(ours.at("pk_hog"), theirs.at("pk_hog"));
  EXPECT_GT(theirs.at("pk_hog"), 500'000'000U);
}

// Process substitution is a pipe. What is said of files does nothing to a terminal.
TEST(ImportTest, PipesAndFilesWithHostileNames) {
  const TempDir dir;
  const std::string script = dir.file("script");
  write_file(script, "a 1/1 [000] 1.000000000: 10 cpu-clock: \n\t401000 f (/bin/a)\n\n");
  const std::string output = dir.file("\x1b[2J\n\u202e.pb.gz");
  const std::string pkprof = pkprof_argv({})[0];
  const Finished done = run_program(
      {find_program("bash"), "-c", R"("$0" import <(cat "$1") -o "$2")", pkprof, script, output});
  EXPECT_EQ(done.status, 0) << done.err;
  const Finished missing = run_pkprof({"import", output + "x"});
  EXPECT_EQ(missing.status, 125);
  for (const std::string& text : {done.out, missing.err}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\u202e"), std::string::npos);
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }
  EXPECT_EQ(run_pkprof({"report", output}).status, 0);
}

uint64_t samples_in(const std::string& perf, const std::string& data) {
  const Finished done = run_program({perf, "report", "-i", data, "--stats"});
  const std::string begin = "SAMPLE events:";
  const size_t at = done.out.find(begin);
  EXPECT_NE(at, std::string::npos) << done.out << done.err;
  return at == std::string::npos ? 0 : std::strtoull(&done.out[at + begin.size()], nullptr, 10);
}

// The fields that perf prints by itself, without one of them, or two of those before the place.
std::vector<std::string> choices_of_fields() {
  const std::vector<std::string> fields{"comm",  "pid",    "tid", "cpu", "time",
                                        "event", "period", "sym", "dso"};
  std::vector<std::string> choices;
  const auto without = [&](size_t a, size_t b) {
    std::string all = "ip";
    for (size_t i = 0; i < fields.size(); ++i)
      if (i != a && i != b) all += "," + fields[i];
    choices.push_back(all);
  };
  for (size_t a = 0; a < fields.size(); ++a)
    for (size_t b = a; b < (a < fields.size() - 2 ? fields.size() - 2 : a + 1); ++b) without(a, b);
  for (const char* more :
       {"symoff", "dsoff", "misc", "srcline", "cgroup", "addr,weight", "symoff,dsoff"})
    choices.push_back("ip,comm,pid,tid,cpu,time,event,period,sym,dso," + std::string(more));
  for (const char* few :
       {"comm,tid,ip,sym", "comm,pid,tid,event,ip,sym,dso", "comm,tid,time,ip,sym",
        "comm,cpu,time,ip,sym,dso", "tid,time,event", "comm,tid,cpu,time,event"})
    choices.emplace_back(few);
  return choices;
}

class ImportFieldsTest : public ::testing::TestWithParam<bool> {};

TEST_P(ImportFieldsTest, AnyMayBeLeftOut) {
  skip_unless_able();
  const std::string perf = find_program("perf");
  if (perf.empty()) GTEST_SKIP() << "needs perf";
  const TempDir dir;
  const std::string data = dir.file("perf.data");
  Stage stage;
  stage.start_hog(0);
  Argv record{perf, "record", "-q", "-e", "cpu-clock", "-F", "97", "-a", "-o", data};
  if (GetParam()) record.emplace_back("-g");
  for (const char* word : {"--", "sleep", "0.5"}) record.emplace_back(word);
  const Finished recorded = run_program(record);
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  const uint64_t samples = samples_in(perf, data);
  size_t tried = 0;
  for (const std::string& fields : choices_of_fields()) {
    const std::string script = dir.file("script");
    // What this perf does not know, or has not recorded, it refuses.
    if (run_program(
            {"sh", "-c", R"("$0" script -F "$1" -i "$2" >"$3")", perf, fields, data, script})
            .status != 0)
      continue;
    ++tried;
    const std::string profile = dir.file("profile");
    const Finished imported = run_pkprof({"import", script, "-o", profile});
    EXPECT_EQ(imported.status, 0) << fields << ": " << imported.err;
    if (imported.status != 0) continue;
    const json report = json::parse(run_pkprof({"report", "--json", profile}).out);
    EXPECT_EQ(report.at("samples").at("taken"), samples) << fields;
    EXPECT_EQ(report.at("degraded").dump().find("not understood"), std::string::npos)
        << fields << ": " << report.at("degraded").dump();
  }
  EXPECT_GT(samples, 40);
  EXPECT_GT(tried, 35);
}

INSTANTIATE_TEST_SUITE_P(, ImportFieldsTest, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "Stacks" : "Places"; });

TEST(ImportTest, PerfsOwnFileIsSaidToBeOne) {
  const TempDir dir;
  std::ofstream(dir.file("perf.data")) << "PERFILE2 and so on";
  const Finished done = run_pkprof({"import", dir.file("perf.data")});
  EXPECT_EQ(done.status, 125);
  EXPECT_NE(done.err.find("perf script -i"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace pkprof::live
