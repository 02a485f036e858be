// SPDX-License-Identifier: Apache-2.0
// export --to gmon, pkgmon and pkgprof on a running kernel, with GNU gprof as the judge: it reads
// every file without a word, and its flat profile is ours.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gprof.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;
using test::Gprof;
using test::GprofRow;
using test::run_gprof;
using testnet::Pair;
using testnet::sibling;

// Of a function's share: gprof prints two digits.
constexpr double within = 0.03;

Running::Options in_directory(const std::string& path) {
  return {.env = {"COLUMNS=8000"}, .before_exec = [path] {
            if (chdir(path.c_str())) _exit(99);
          }};
}

void expect_read(const Gprof& gprof, const std::string& what) {
  EXPECT_EQ(gprof.status, 0) << what << "\n" << gprof.err;
  EXPECT_EQ(gprof.err, "") << what;
  EXPECT_FALSE(gprof.flat.empty()) << what << "\n" << gprof.out;
}

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

// "137k.cat" is read with gmon.sym.137.cat.
std::string symbols_of(std::string suffix) {
  const size_t dot = suffix.find('.');
  if (std::isdigit(suffix[0]) && (suffix[dot - 1] == 'k' || suffix[dot - 1] == 'u'))
    suffix.erase(dot - 1, 1);
  return "gmon.sym." + suffix;
}

std::string file_in(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

// All that pkprof wrote to a directory.
size_t expect_all_read(const std::string& directory) {
  size_t read = 0;
  for (const std::string& name : names_in(directory)) {
    if (!name.starts_with("gmon.out.")) continue;
    expect_read(
        run_gprof(file_in(directory, symbols_of(name.substr(9))), {file_in(directory, name)}),
        name);
    ++read;
  }
  return read;
}

// Of our own flat profile, of these processes apart: shares in percent, by name as in the files.
std::map<std::string, double> our_shares(const std::string& profile, const std::string& pids) {
  const Finished f = run_pkprof({"report", profile, "--view", "flat", "--pid", pids, "--json"});
  EXPECT_EQ(f.status, 0) << f.err;
  const json report = json::parse(f.out);
  std::map<std::string, double> shares;
  for (const json& function : report.at("functions")) {
    std::string name = function.at("name");
    const size_t unknown = name.find(":[unknown]");
    if (unknown != std::string::npos && function.contains("file"))
      name = name.substr(0, unknown + 1) + "[unknown in " + function.at("file").get<std::string>() +
             "]";
    shares[name] +=
        100 * function.at("self_ns").get<double>() / report.at("shown_ns").get<double>();
  }
  return shares;
}

// Both ways: nothing is missing, and nothing is there that is not ours.
void expect_our_shares(const Gprof& gprof, const std::map<std::string, double>& ours) {
  std::map<std::string, double> theirs = gprof.percent_of();
  size_t compared = 0;
  for (const auto& [name, percent] : ours) {
    if (percent < within) continue;
    ++compared;
    EXPECT_NEAR(theirs[name], percent, within) << name << "\n" << gprof.out;
  }
  EXPECT_GE(compared, 5U) << gprof.out;
  for (const auto& [name, percent] : theirs) {
    if (percent >= within) {
      EXPECT_TRUE(ours.contains(name)) << name << ": " << percent;
    }
  }
}

const GprofRow* find(const std::vector<GprofRow>& rows, const std::string& name) {
  const auto it = std::ranges::find(rows, name, &GprofRow::name);
  return it == rows.end() ? nullptr : &*it;
}

class GmonTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    if (find_program("gprof").empty()) GTEST_SKIP() << "needs gprof";
  }

  Turn turn_;
  TempDir dir_;
};

class GmonNetworkTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    if (IsSkipped()) return;
    if (find_program("gprof").empty()) GTEST_SKIP() << "needs gprof";
  }

  TempDir dir_;
};

int pid_of_program(const std::string& profile, const std::string& program) {
  const std::set<int> pids = read_report(profile).pids_running(program);
  EXPECT_EQ(pids.size(), 1U) << program;
  return pids.empty() ? 0 : *pids.begin();
}

TEST_F(GmonTest, HotSpotsInUserCodeAndKernel) {
  const std::string profile = dir_.file("p.pb.gz");
  // Half of an emulated CPU's time in it goes to memory that is cleared, and samples are fewer.
  const Finished recorded =
      run_pkprof({"record", "-F", "3989", "--budget", "100", "-o", profile, "--",
                  sibling("pk_seamless_frames"), in_guest() ? "30" : "3"});
  ASSERT_EQ(recorded.status, 0);
  const double ratio = std::stod(recorded.out);
  const std::string pid = std::to_string(pid_of_program(profile, "pk_seamless_frames"));
  const std::string out = dir_.file("out");
  const Finished exported = run_pkprof({"export", profile, "--to", "gmon", "-o", out});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_GE(expect_all_read(out), 6U);

  const std::string suffix = pid + ".pk_seamless_fra";  // as long as a process's name can be
  const Gprof gprof = run_gprof(out + "/gmon.sym." + suffix, {out + "/gmon.out." + suffix});
  expect_our_shares(gprof, our_shares(profile, pid));

  // The graph crosses into the kernel at system calls and faults, and has the stacks' times, not
  // those of equal calls: burn() is called as often from either. The difference allowed is six
  // times what some 1,300 samples of the shorter scatter by.
  ASSERT_GT(ratio, 2);
  const GprofRow* const brief = find(gprof.graph, pid + "u:burn_short");
  const GprofRow* const longer = find(gprof.graph, pid + "u:burn_long");
  const GprofRow* const reader = find(gprof.graph, pid + "u:read_zeros");
  const GprofRow* const toucher = find(gprof.graph, pid + "u:touch_pages");
  const GprofRow* const call = find(gprof.graph, pid + "k:syscall:read");
  const GprofRow* const fault = find(gprof.graph, pid + "k:fault");
  ASSERT_TRUE(brief && longer && reader && toucher && call && fault) << gprof.out;
  EXPECT_NEAR(longer->child_seconds / brief->child_seconds, ratio, 0.2 * ratio) << gprof.out;
  EXPECT_GE(reader->child_seconds, call->child_seconds * 0.95) << gprof.out;
  EXPECT_GE(toucher->child_seconds, fault->child_seconds * 0.9) << gprof.out;
  EXPECT_GT(call->child_seconds, 0.05) << gprof.out;
  EXPECT_GT(fault->child_seconds, 0.05) << gprof.out;
}

TEST_F(GmonNetworkTest, AClientAndItsServer) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const std::string profile = dir_.file("p.pb.gz");
  ASSERT_EQ(run_pkprof({"record", "-a", "-d", "2", "--budget", "100", "-o", profile}).status, 0);
  const std::string r = std::to_string(receiver);
  const std::string s = std::to_string(sender);
  const std::string out = dir_.file("out");
  ASSERT_EQ(run_pkprof({"export", profile, "--to", "gmon", "-o", out, "--pid", r + "," + s}).status,
            0);
  EXPECT_GE(expect_all_read(out), 8U);

  const std::string one = out + "/gmon.out." + r + ".pk_udp";
  const std::string other = out + "/gmon.out." + s + ".pk_udp";
  const Gprof both = run_gprof(out + "/gmon.sym.all", {one, other});
  expect_read(both, "both");
  expect_our_shares(both, our_shares(profile, r + "," + s));

  // What was received while others ran hangs below the process that it was for.
  const GprofRow* const softirq = find(both.graph, r + "k:softirq:NET_RX");
  const GprofRow* const process = find(both.graph, "pk_udp[" + r + "]");
  ASSERT_TRUE(softirq && process) << both.out;
  EXPECT_GT(softirq->percent, 5) << both.out;
  EXPECT_GE(process->self_seconds + process->child_seconds, softirq->child_seconds) << both.out;

  // pkgprof lists the same, from the files as from the profile.
  const Finished listed = run_program({sibling("pkgprof"), "-p", r, s}, in_directory(out));
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_NE(listed.out.find("gmon.out." + r + ".pk_udp, gmon.out." + s + ".pk_udp"),
            std::string::npos)
      << listed.out;
  EXPECT_NE(listed.out.find(r + "k:"), std::string::npos);
  EXPECT_NE(listed.out.find(s + "k:"), std::string::npos);
  const Finished whole = run_program({sibling("pkgprof"), "-i", profile, r, s});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.out.find("Index by function name"), std::string::npos);
}

// Rows of pkgprof's flat profile with calls.
struct CalledRow {
  double self = 0;
  uint64_t calls = 0;
};
std::map<std::string, CalledRow> called_rows(const std::string& listing) {
  std::map<std::string, CalledRow> rows;
  std::istringstream in(listing);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    double percent = 0;
    double cumulative = 0;
    double total = 0;
    double per_call = 0;
    CalledRow row;
    if (!(words >> percent >> cumulative >> row.self >> total >> row.calls >> per_call >> per_call))
      continue;
    std::string name;
    std::getline(words, name);
    name.erase(0, name.find_first_not_of(' '));
    const size_t gap = name.find("  ");          // then comes the file
    CalledRow& sum = rows[name.substr(0, gap)];  // constructors come in several of one name
    sum.self += row.self;
    sum.calls += row.calls;
  }
  return rows;
}

// The paper's first procedure: a command, profiled until it ends; then its listing.
TEST_F(GmonTest, PkgmonOfACommand) {
  const std::string big = dir_.file("big");
  write_file(big, std::string(size_t{64} << 20, 'x'));
  const std::string out = dir_.file("out");
  std::filesystem::create_directory(out);
  const Finished run = run_program({sibling("pkgmon"), "-F", "4999", "cat", big}, [&] {
    Running::Options options = in_directory(out);
    options.out_path = "/dev/null";
    return options;
  }());
  ASSERT_EQ(run.status, 0) << run.err;
  std::string pid = run.err.substr(run.err.find("pkgmon: process ") + 16);
  pid = pid.substr(0, pid.find('\n'));
  const std::set<std::string> names = names_in(out);
  for (const std::string& name :
       {"gmon.out." + pid + "k.cat", "gmon.out." + pid + ".cat", "gmon.sym." + pid + ".cat",
        std::string("gmon.out.-k.kernel"), std::string("gmon.out.-k.other")})
    EXPECT_TRUE(names.contains(name)) << name << "\n" << run.err;
  EXPECT_GE(expect_all_read(out), 4U);

  // Others' kernel functions have names, too.
  const Gprof others = run_gprof(out + "/gmon.sym.-k.other", {out + "/gmon.out.-k.other"});
  for (const GprofRow& row : others.flat) EXPECT_TRUE(row.name.starts_with("-k:")) << row.name;

  const Finished listed = run_program({sibling("pkgprof"), pid}, in_directory(out));
  ASSERT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.err, "");
  EXPECT_TRUE(listed.out.starts_with("of gmon.out." + pid + ".cat\n")) << listed.out;
  EXPECT_NE(listed.out.find("Flat profile: "), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("Call graph: "), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("cat[" + pid + "]"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find(pid + "k:"), std::string::npos) << listed.out;
}

// The second: a process that runs already, for some seconds.
TEST_F(GmonTest, PkgmonOfAProcessForSomeSeconds) {
  Running hog({sibling("pk_seamless_frames"), "60"});
  const std::string pid = std::to_string(hog.pid());
  const std::string out = dir_.file("out");
  std::filesystem::create_directory(out);
  const auto begun = std::chrono::steady_clock::now();
  const Finished run = run_program({sibling("pkgmon"), pid, "2"}, in_directory(out));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 2s);
  hog.signal(SIGKILL);
  hog.wait();
  const std::string suffix = pid + ".pk_seamless_fra";
  EXPECT_TRUE(names_in(out).contains("gmon.out." + suffix)) << run.err;
  EXPECT_FALSE(names_in(out).contains("gmon.out")) << "the process has not ended";
  EXPECT_GE(expect_all_read(out), 4U);
  const Gprof gprof = run_gprof(out + "/gmon.sym." + suffix, {out + "/gmon.out." + suffix});
  EXPECT_GT(gprof.seconds, 0.3) << gprof.out;
  EXPECT_LT(gprof.seconds, 2.5) << gprof.out;
  EXPECT_TRUE(find(gprof.flat, pid + "u:burn")) << gprof.out;
  const Finished listed = run_program({sibling("pkgprof"), "-q", pid}, in_directory(out));
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_NE(listed.out.find(pid + "u:touch_pages"), std::string::npos) << listed.out;
}

// A program compiled with -pg writes its own gmon.out as it ends: its calls are joined, its times
// are not added to ours.
void expect_own_calls(const std::string& program, const std::string& argument,
                      const std::string& out, double least_share) {
  const Finished run = run_program({sibling("pkgmon"), program, argument}, in_directory(out));
  ASSERT_EQ(run.status, 0) << run.err;
  ASSERT_TRUE(names_in(out).contains("gmon.out")) << run.err;
  std::string pid = run.err.substr(run.err.find("pkgmon: process ") + 16);
  pid = pid.substr(0, pid.find('\n'));
  const Gprof own = run_gprof(program, {out + "/gmon.out"});
  expect_read(own, program);

  const Finished listed =
      run_program({sibling("pkgprof"), "-p", pid, "--threshold", "0"}, in_directory(out));
  ASSERT_EQ(listed.status, 0) << listed.err;
  EXPECT_NE(listed.out.find("calls of " + pid + "u as gmon.out counted them"), std::string::npos)
      << listed.out;
  const std::map<std::string, CalledRow> ours = called_rows(listed.out);
  std::map<std::string, uint64_t> wanted;
  for (const GprofRow& row : own.graph)
    wanted[row.name] += row.calls.value_or(0) + row.recursive_calls;
  size_t compared = 0;
  for (const GprofRow& row : own.flat) {
    if (row.percent < least_share || !row.calls) continue;
    ++compared;
    const auto it = ours.find(pid + "u:" + row.name);
    if (it == ours.end())
      ADD_FAILURE() << row.name << " has no calls\n" << listed.out;
    else
      EXPECT_EQ(it->second.calls, wanted[row.name]) << row.name;
  }
  EXPECT_GE(compared, 2U) << own.out;

  // All of it is the time of one process, once.
  const Gprof merged = [&] {
    for (const std::string& name : names_in(out)) {
      if (name.starts_with("gmon.out." + pid + "."))
        return run_gprof(file_in(out, symbols_of(name.substr(9))), {file_in(out, name)});
    }
    return Gprof();
  }();
  const size_t shown = listed.out.find("% time is of the ");
  ASSERT_NE(shown, std::string::npos);
  std::istringstream in(listed.out.substr(shown + 17));
  double said = 0;
  std::string unit;
  in >> said >> unit;
  if (unit == "ms") said /= 1000;
  // Printed with a digit, by gprof with two.
  EXPECT_NEAR(said, merged.seconds, 0.06) << listed.out;
}

TEST_F(GmonTest, AProgramsOwnCalls) {
  const std::string out = dir_.file("out");
  std::filesystem::create_directory(out);
  expect_own_calls(sibling("pk_seamless_gprof"), "2", out, 1);
}

TEST_F(GmonTest, SomebodyElsesProgramsCalls) {
  const std::string out = dir_.file("out");
  std::filesystem::create_directory(out);
  expect_own_calls(sibling("pk_parse"), in_guest() ? "20" : "100", out, 2);
}

TEST_F(GmonTest, SayWhatIsWrong) {
  const auto expect_wrong = [&](Argv argv, int status, const std::string& why) {
    argv[0] = sibling(argv[0]);
    const Finished f = run_program(argv, in_directory(dir_.path()));
    EXPECT_EQ(f.status, status) << f.err;
    EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
  };
  expect_wrong({"pkgprof", "99999999"}, 125, "pkprof.pb.gz");
  expect_wrong({"pkgprof", "-i", "nothing.pb.gz"}, 125, "nothing.pb.gz");
  expect_wrong({"pkgprof", "nonsense"}, 2, "see `pkgprof --help`");
  expect_wrong({"pkgmon", "12"}, 2, "PID... SECONDS");
  expect_wrong({"pkgmon", "-x"}, 2, "-x");
  expect_wrong({"pkgmon", "-b", "cat"}, 2, "no command");
  expect_wrong({"pkgmon", "-b", "-h"}, 2, "begin or halt");
  expect_wrong({"pkgmon", "/no/such/program"}, 127, "/no/such/program");
  expect_wrong({"pkprof", "export", "--to", "gmon"}, 125, "pkprof.pb.gz");
  expect_wrong({"pkprof", "export", "--to", "nonsense"}, 2, "nonsense");
}

}  // namespace
}  // namespace pkprof::live
