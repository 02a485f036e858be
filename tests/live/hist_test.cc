// SPDX-License-Identifier: Apache-2.0
// hist: the four experiments of the Minix `profile` command (nothing, two hot spots, system calls,
// sleep), with addresses as nm prints them; libraries, short programs, and what goes wrong.
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;
using testnet::sibling;

struct Symbol {
  uint64_t start = 0;
  uint64_t size = 0;
};

// What nm says of a file, by name.
std::map<std::string, Symbol> nm(const std::string& file) {
  const Finished listed = run_program({"nm", "-S", file});
  if (listed.status != 0) throw std::runtime_error("nm: " + listed.err);
  std::map<std::string, Symbol> symbols;
  std::istringstream lines(listed.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (all.size() == 4)
      symbols[all[3]] = {std::stoull(all[0], nullptr, 16), std::stoull(all[1], nullptr, 16)};
    if (all.size() == 3 && all[0].size() == 16)
      symbols[all[2]] = {std::stoull(all[0], nullptr, 16)};
  }
  return symbols;
}

json parse(const Finished& done) {
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");
  json h = json::parse(done.out);
  EXPECT_EQ(h.at("schema"), "pkprof.histogram/1");
  EXPECT_EQ(h.at("lost"), 0);
  // Nothing is lost: rows and what is elsewhere make all there is.
  uint64_t samples = 0;
  for (const char* part : {"rows", "elsewhere"})
    for (const json& row : h.at(part)) samples += row.at("samples").get<uint64_t>();
  EXPECT_EQ(samples, h.at("samples").get<uint64_t>()) << done.out;
  return h;
}

json hist(Argv options, const Argv& command) {
  options.insert(options.begin(), {"hist", "--json"});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return parse(run_pkprof(options));
}

uint64_t samples_in(const json& h, const Symbol& symbol) {
  uint64_t samples = 0;
  for (const json& row : h.at("rows")) {
    const auto first = row.at("first").get<uint64_t>();
    const auto last = row.at("last").get<uint64_t>();
    if (first >= symbol.start && last < symbol.start + symbol.size)
      samples += row.at("samples").get<uint64_t>();
  }
  return samples;
}

uint64_t elsewhere(const json& h, const std::string& kind) {
  uint64_t samples = 0;
  for (const json& e : h.at("elsewhere"))
    if (e.at("kind") == kind) samples += e.at("samples").get<uint64_t>();
  return samples;
}

double share(const json& h, uint64_t samples) {
  return static_cast<double>(samples) / h.at("samples").get<double>();
}

// Twice as much in the second of two functions that are nearly all there is, each where nm says.
void expect_two_to_one(const json& h, const std::string& program, double within) {
  const auto symbols = nm(program);
  const auto a = static_cast<double>(samples_in(h, symbols.at("bogusa")));
  const auto b = static_cast<double>(samples_in(h, symbols.at("bogusb")));
  EXPECT_GE(a, 300);
  EXPECT_NEAR(b / a, 2, 2 * within) << a << " and " << b;
  EXPECT_GE((a + b) / h.at("samples").get<double>(), 0.9) << h;
}

const char* rounds() {
  return in_guest() ? "1000" : "2000";
}

class HistTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (find_program("nm").empty()) GTEST_SKIP() << "there is no nm to compare with";
  }
  TempDir dir_;
};

TEST_F(HistTest, AProgramTooShortToBeSampledGivesAnEmptyHistogram) {
  const Argv command = {sibling("pk_empty_static")};
  const char* hz = in_guest() ? "1" : "50";
  const Finished done = run_pkprof({"hist", "-F", hz, "--", command[0]});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("\n0%.....0%\n"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("No sample: the program ended"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find('*'), std::string::npos) << done.out;
  const json h = hist({"-F", hz}, command);
  EXPECT_EQ(h.at("samples"), 0);
  EXPECT_EQ(h.at("rows").size(), 20);
  for (const json& row : h.at("rows")) EXPECT_EQ(row.at("samples"), 0);
}

class HistVariants : public HistTest, public testing::WithParamInterface<const char*> {};

TEST_P(HistVariants, TwoHotSpotsOfTwoToOneAreWhereNmSays) {
  const std::string program = sibling(std::string("pk_hotspots_") + GetParam());
  // So many samples that chance has no say, should the machine be busy.
  const json h = hist({"-n", "0", "-F", in_guest() ? "3989" : "19997"}, {program, rounds()});
  EXPECT_EQ(h.at("file"), std::filesystem::canonical(program).string());
  expect_two_to_one(h, program, in_guest() ? 0.1 : 0.03);  // by how many samples there are
}

INSTANTIATE_TEST_SUITE_P(Builds, HistVariants,
                         testing::Values("pie", "nopie", "static", "static_pie"),
                         [](const auto& chosen) { return std::string(chosen.param); });

// Zoomed into one function by its name, then by the addresses that nm gives.
TEST_F(HistTest, ARangeIsExact) {
  const std::string program = sibling("pk_hotspots_pie");
  const Symbol b = nm(program).at("bogusb");
  std::ostringstream range;
  range << std::hex << b.start << "-0x" << b.start + b.size - 1;
  for (const std::string& asked : {std::string("bogusb"), range.str()}) {
    const json h = hist({"-r", asked, "-n", "4"}, {program, "600"});
    const json& rows = h.at("rows");
    ASSERT_LE(rows.size(), 4) << h;
    EXPECT_EQ(rows.front().at("first"), b.start);
    EXPECT_EQ(rows.back().at("last"), b.start + b.size - 1);
    for (size_t i = 1; i < rows.size(); ++i)
      EXPECT_EQ(rows[i].at("first").get<uint64_t>(), rows[i - 1].at("last").get<uint64_t>() + 1);
    EXPECT_NEAR(share(h, samples_in(h, b)), 2.0 / 3, 0.08);
    EXPECT_NEAR(share(h, elsewhere(h, "outside")), 1.0 / 3, 0.08);
  }
}

TEST_F(HistTest, TheBarsAreThePapers) {
  const std::string program = sibling("pk_hotspots_pie");
  const Finished done =
      run_pkprof({"hist", "--", program, "600"}, {.env = {"LC_ALL=C", "COLUMNS=80"}});
  ASSERT_EQ(done.status, 0) << done.err;
  std::istringstream lines(done.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.ends_with("pk_hotspots_pie")) << line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("0%.....")) << line;
  bool named = false;
  for (int rows = 0; rows < 20 && std::getline(lines, line); ++rows) {
    EXPECT_LE(line.size(), 80) << line;
    EXPECT_NE(line.find("%) :"), std::string::npos) << line;
    named = named ||
            (line.find("***") != std::string::npos && line.find("bogusb") != std::string::npos);
  }
  EXPECT_TRUE(named) << done.out;
}

TEST_F(HistTest, SystemCallsCountAtTheInstructionThatCalls) {
  for (const char* variant : {"pie", "static"}) {
    const std::string program = sibling(std::string("pk_syscall_") + variant);
    const uint64_t enters = nm(program).at("stub_enters").start;
    const Argv command = {program, in_guest() ? "1000000" : "2000000"};
    const json h = hist({"-n", "0"}, command);
    uint64_t there = 0;
    uint64_t most = 0;
    for (const json& row : h.at("rows")) {
      const auto samples = row.at("samples").get<uint64_t>();
      most = std::max(most, samples);
      if (row.at("first") == enters) there = samples;
    }
    EXPECT_EQ(there, most) << h;
    EXPECT_GE(share(h, there), 0.7) << h;
    // Apart, there is next to nothing left at the instruction.
    const json apart = hist({"-n", "0", "--kernel"}, command);
    EXPECT_NEAR(share(apart, elsewhere(apart, "system calls")), share(h, there), 0.1) << apart;
    EXPECT_LE(share(apart, samples_in(apart, {enters, 1})), 0.2) << apart;
  }
}

TEST_F(HistTest, TimeBlockedIsNotCounted) {
  const std::string program = sibling("pk_blocking_pie");
  const json h = hist({"-n", "0"}, {program, "1500"});
  const auto symbols = nm(program);
  EXPECT_GE(share(h, samples_in(h, symbols.at("waste_time"))), 0.9) << h;
  EXPECT_LE(share(h, samples_in(h, symbols.at("save_time"))), 0.01) << h;
  EXPECT_NEAR(h.at("ns").get<double>(), 1.5e9, 0.25e9) << "as long as it was at work";
}

TEST_F(HistTest, ASharedLibraryCanBeChosen) {
  // Beside what the linker does before.
  const Argv command = {sibling("pk_inlib"), in_guest() ? "2000" : "300"};
  const Symbol hot = nm(sibling("pk_hotlib.so")).at("hot_in_library");
  for (const std::string& name : {std::string("pk_hotlib"), std::string("pk_hotlib.so"),
                                  std::filesystem::canonical(sibling("pk_hotlib.so")).string()}) {
    const json h = hist({"-n", "0", "--library", name}, command);
    EXPECT_GE(share(h, samples_in(h, hot)), 0.9) << h;
  }
  const Finished none = run_pkprof({"hist", "--library", "libnone", "--", "true"});
  EXPECT_EQ(none.status, 125);
  EXPECT_NE(none.err.find("no such file was mapped; there were: "), std::string::npos) << none.err;
}

// Each run, with a millisecond in main, is shorter than the clock's period: a clock that started
// with it would never tick.
TEST_F(HistTest, ShortProgramsAreRepeated) {
  const std::string program = sibling("pk_empty_static");
  const char* hz = in_guest() ? "31" : "311";
  constexpr int runs = 600;
  EXPECT_EQ(hist({"-F", "31"}, {program, "1000"}).at("samples"), 0);
  const json h = hist({"-F", hz, "-n", "0", "--repeat", std::to_string(runs)}, {program, "1000"});
  const double expected = runs * 0.001 * std::stod(hz);
  // Chance makes it six percent more or less; in a guest, where there are few samples, a quarter.
  EXPECT_NEAR(static_cast<double>(samples_in(h, nm(program).at("main"))), expected,
              (in_guest() ? 0.9 : 0.25) * expected)
      << h;
}

TEST_F(HistTest, TheProgramIsTheOneThatTheCommandBecomes) {
  const std::string program = sibling("pk_hotspots_pie");
  const json h = hist({"-n", "0"}, {"env", "A=1", program, "400"});
  EXPECT_EQ(h.at("file"), std::filesystem::canonical(program).string());
  EXPECT_GE(share(h, samples_in(h, nm(program).at("bogusb"))), 0.5);
}

TEST_F(HistTest, ChildrenAreNotTheProgram) {
  const json h =
      hist({}, {"sh", "-c", sibling("pk_hotspots_pie") + " 400; " + sibling("pk_empty_static")});
  EXPECT_LE(h.at("samples").get<uint64_t>(), in_guest() ? 300U : 50U) << h;
  bool said = false;
  for (const json& sentence : h.at("degraded"))
    said = said || sentence.get<std::string>().starts_with("samples of its children, not counted:");
  EXPECT_TRUE(said) << h;
}

TEST_F(HistTest, ThreadsAreTheProgram) {
  const json h = hist({}, {sibling("pk_inlib"), "250", "4"});
  EXPECT_NEAR(h.at("ns").get<double>(), 1e9, 0.2e9) << "four times 250 ms";
}

TEST_F(HistTest, ItsExitStatusAndOutputAreItsOwn) {
  const Finished seven = run_pkprof({"hist", "--", "sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(seven.status, 7);
  EXPECT_TRUE(seven.out.starts_with("out\n")) << seven.out;
  EXPECT_EQ(seven.err, "err\n");
  EXPECT_EQ(run_pkprof({"hist", "--", "sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
  EXPECT_EQ(run_pkprof({"hist", "--repeat", "3", "--", "sh", "-c", "exit 5"}).status, 5);
}

void expect_complaint(const Finished& done, int status, const std::string& about) {
  EXPECT_EQ(done.status, status);
  EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  EXPECT_TRUE(done.err.starts_with("pkprof: ")) << done.err;
  EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
}

TEST_F(HistTest, WhatGoesWrongIsOneLine) {
  expect_complaint(run_pkprof({"hist", "--", "/nonexistent/program"}), 127, "cannot be executed");
  expect_complaint(run_pkprof({"hist"}), 2, "name it behind --");
  expect_complaint(run_pkprof({"hist", "-n", "-1", "--", "true"}), 2, "--rows");
  expect_complaint(run_pkprof({"hist", "-F", "0", "--", "true"}), 2, "--frequency");
  expect_complaint(run_pkprof({"hist", "-r", "20-10", "--", "true"}), 2, "ends before it starts");
  expect_complaint(run_pkprof({"hist", "-r", "no_function", "--", "true"}), 125,
                   "neither START-END nor a function");
  const std::string mark = dir_.file("mark");
  expect_complaint(run_pkprof({"hist", "-F", "100000000", "--", "touch", mark}), 125,
                   "kernel.perf_event_max_sample_rate");
  EXPECT_FALSE(std::filesystem::exists(mark)) << "the command must not have been run";
}

// Without any privilege user code can be sampled, and the report says that the kernel was not; or
// the kernel, too, where that is allowed.
TEST_F(HistTest, NoPrivilegeIsNeeded) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  for (const char* name : {"pkprof", "pk_syscall_static"})
    std::filesystem::copy_file(sibling(name), dir_.file(name));
  const auto as_nobody = [] {
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(126);
  };
  std::vector<double> in_system_calls;
  for (const char* paranoid : {"1", "2"}) {
    const Sysctl allowed("/proc/sys/kernel/perf_event_paranoid", paranoid);
    const json h =
        parse(run_program({dir_.file("pkprof"), "hist", "-n", "0", "--kernel", "--json", "--",
                           dir_.file("pk_syscall_static"), in_guest() ? "500000" : "10000000"},
                          {.before_exec = as_nobody}));
    EXPECT_GT(h.at("samples").get<uint64_t>(), 10U) << h;
    bool said = false;
    for (const json& sentence : h.at("degraded"))
      said = said || sentence.get<std::string>().starts_with("only user code could be sampled");
    EXPECT_EQ(said, *paranoid == '2') << h;
    in_system_calls.push_back(share(h, elsewhere(h, "system calls")));
  }
  // The ticks that come while the kernel is entered or left are taken in user code. An emulated CPU
  // takes them where a block of code ends: behind a system call, most of all.
  if (!in_guest()) {
    EXPECT_GT(in_system_calls[0], in_system_calls[1]);
  }
}

// As kernels do that allow it to nobody else.
void refuse_perf_events() {
  sock_filter refuse[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(refuse), refuse};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(126);
}

TEST_F(HistTest, WherePerfEventsAreRefusedTheCommandIsNotRun) {
  const std::string mark = dir_.file("mark");
  const Finished done =
      run_pkprof({"hist", "--", "touch", mark}, {.before_exec = refuse_perf_events});
  expect_complaint(done, 125, "kernel.perf_event_paranoid is");
  EXPECT_FALSE(std::filesystem::exists(mark));
}

// The same from a recorded profile, as far as it tells.
TEST_F(HistTest, AProfileGivesTheSameAddresses) {
  for (const char* variant : {"pie", "nopie"}) {
    const std::string program = sibling(std::string("pk_hotspots_") + variant);
    const std::string file = dir_.file("profile.pb.gz");
    const Finished recorded = run_pkprof(
        {"record", "-F", "3989", "--budget", "100", "-o", file, "--", program, rounds()});
    ASSERT_EQ(recorded.status, 0) << recorded.err;
    const json h = parse(run_pkprof({"report", file, "--view", "histogram", "-n", "0", "--json"}));
    EXPECT_EQ(h.at("file"), std::filesystem::canonical(program).string());
    expect_two_to_one(h, program, 0.12);  // of some thousand samples
    const json zoomed =
        parse(run_pkprof({"report", file, "--view", "histogram", "-r", "bogusa", "--json"}));
    const Symbol a = nm(program).at("bogusa");
    EXPECT_GE(zoomed.at("rows").front().at("first").get<uint64_t>(), a.start);
    EXPECT_LT(zoomed.at("rows").back().at("last").get<uint64_t>(), a.start + a.size);
  }
}

}  // namespace
}  // namespace pkprof::live
