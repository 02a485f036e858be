// SPDX-License-Identifier: Apache-2.0
// record and run: what they are asked to record, when they end, and with which status.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

// How many lines pkprof complained in.
long lines(const std::string& text) {
  return std::ranges::count(text, '\n');
}

void expect_one_complaint(const Finished& finished) {
  EXPECT_EQ(lines(finished.err), 1) << finished.err;
  EXPECT_TRUE(finished.err.starts_with("pkprof: ")) << finished.err;
  EXPECT_EQ(finished.out, "");
}

class CommandTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  Finished record_command(const Argv& command, const char* budget = "5") {
    Argv argv = {"record", "-o", file_, "--budget", budget, "--"};
    argv.insert(argv.end(), command.begin(), command.end());
    return run_pkprof(argv);
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  Stage stage_;
};

TEST_F(CommandTest, ItsExitStatusIsOurs) {
  EXPECT_EQ(record_command({"true"}).status, 0);
  EXPECT_EQ(record_command({"sh", "-c", "exit 7"}).status, 7);
  read_report(file_);
  EXPECT_EQ(run_pkprof({"run", "--", "sh", "-c", "exit 3"}).status, 3);
}

TEST_F(CommandTest, ASignalsNumberIsInOurStatus) {
  EXPECT_EQ(record_command({"sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
  EXPECT_EQ(record_command({"sh", "-c", "kill -TERM $$"}).status, 128 + SIGTERM);
  read_report(file_);
}

TEST_F(CommandTest, ItsOutputIsItsOwn) {
  const Finished done = record_command({"sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(done.out, "out\n");
  EXPECT_EQ(done.err, "err\n");
}

TEST_F(CommandTest, ACommandThatIsNotThere) {
  const Finished done = record_command({"/nonexistent/program", "-x"});
  EXPECT_EQ(done.status, 127);
  expect_one_complaint(done);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(CommandTest, ACommandThatCannotBeExecuted) {
  const std::string text = dir_.file("text");
  write_file(text, "no program\n");
  const Finished done = record_command({text});
  EXPECT_EQ(done.status, 126);
  expect_one_complaint(done);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(CommandTest, ItRunsAsTheUserThatIsNamed) {
  const std::string tell = "id -u; id -g; id -G; echo $USER $LOGNAME";
  for (const char* subcommand : {"run", "stat", "hist"}) {
    const Finished done = run_pkprof({subcommand, "--user", "daemon", "--", "sh", "-c", tell});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_TRUE(done.out.starts_with("1\n1\n1\ndaemon daemon\n")) << done.out;
  }
  for (const Argv& wrong : {Argv{"run", "--user", "no-such-user", "--", "true"},
                            Argv{"run", "--user", "daemon", "-d", "1"}}) {
    const Finished done = run_pkprof(wrong);
    EXPECT_EQ(done.status, 125);
    expect_one_complaint(done);
  }
}

// HOME is kept by some ways to become root. What its owner wrote there is not what root asks for.
TEST_F(CommandTest, AnotherUsersConfigurationIsNotRead) {
  const std::string config = dir_.file("pkprof.toml");
  const std::string page = dir_.file("page.html");
  write_file(config, "[report]\nhtml = \"" + page + "\"\n");
  ASSERT_EQ(record_command({"true"}).status, 0);
  const std::string home = "XDG_CONFIG_HOME=" + dir_.path();
  const auto report = [&] {
    return run_pkprof({"report", file_}, {.env = {"PKPROF_CONFIG=", home}});
  };

  ASSERT_EQ(chown(config.c_str(), 1, 1), 0);
  const Finished others = report();
  EXPECT_EQ(others.status, 0);
  EXPECT_NE(others.err.find(config + " is not read: it is another user's"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(page));

  ASSERT_EQ(chown(config.c_str(), 0, 0), 0);
  EXPECT_EQ(report().status, 0);
  EXPECT_TRUE(std::filesystem::exists(page));

  std::filesystem::remove(config);
  ASSERT_EQ(mkfifo(config.c_str(), 0600), 0);
  EXPECT_EQ(report().status, 0);
}

// However often a process is met before and after, and by which CPU: the last name is shown, in
// recordings that the kernel holds, too.
TEST_F(CommandTest, AProcessThatNamesItself) {
  const std::string script =
      "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; "
      "printf second >/proc/$$/comm; "
      "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; "
      "printf third >/proc/$$/comm";
  const auto expect_names = [&] {
    const json report = json::parse(run_pkprof({"report", file_, "--json"}).out);
    std::set<std::string> names;
    for (const json& process : report["processes"])
      if (process.value("first_comm", "") == "sh") names.insert(process["comm"]);
    EXPECT_EQ(names, std::set<std::string>{"third"}) << report;
  };
  EXPECT_EQ(record_command({"sh", "-c", script}).status, 0);
  expect_names();
  ASSERT_EQ(run_pkprof({"start"}).status, 0);
  run_program({"sh", "-c", script});
  EXPECT_EQ(run_pkprof({"stop", "-o", file_}).status, 0);
  expect_names();
}

// As in a container: the command, `-p` and /proc have the namespace's numbers. What runs outside it
// has none there, and keeps the host's.
TEST_F(CommandTest, InsideAPidNamespace) {
  const std::string hog = testnet::sibling("pk_hog") + " >/dev/null";
  const std::string record = "\"$0\" record -q -o \"$1\" ";
  const int outside = stage_.start_hog(last_cpu());
  const auto inside = [&](const std::string& script) {
    return run_program({find_program("unshare"), "-pf", "--mount-proc", "sh", "-ec", script,
                        pkprof_argv({})[0], file_});
  };
  const auto expect_hog = [&](const Finished& done, const std::string& pid) {
    EXPECT_EQ(done.status, 0) << done.err;
    const Report report = read_report(file_);
    const std::set<int> hogs = report.pids_of("pk_hog");
    EXPECT_EQ(hogs.count(std::stoi(pid)), 1) << done.out << report.text;
    EXPECT_GT(report.charged_to(std::stoi(pid)), 100'000'000U) << report.text;
    return report;
  };
  const Finished command = inside(record + "-- " + hog + " --seconds 1");
  const std::set<int> hogs = read_report(file_).pids_of("pk_hog");
  ASSERT_EQ(hogs.size(), 1) << command.err;
  EXPECT_LT(*hogs.begin(), 100);
  expect_hog(command, std::to_string(*hogs.begin()));

  // What is left there ends with the namespace's first process.
  const Finished by_number = inside(hog + " & echo $!; " + record + "-d 1 -p $!");
  expect_hog(by_number, by_number.out);

  const Finished all = inside(hog + " & echo $!; " + record + "-d 1 -a");
  const Report everyone = expect_hog(all, all.out);
  constexpr int is_outside = 1 << 28;
  EXPECT_GT(everyone.charged_to(is_outside | outside), 100'000'000U) << everyone.text;
  const std::string text = run_pkprof({"report", file_}).out;
  EXPECT_NE(text.find("host:" + std::to_string(outside) + " pk_hog"), std::string::npos) << text;

  // With another namespace's /proc every number would be taken for someone else's.
  const Finished blind = run_program(
      {find_program("unshare"), "-pf", pkprof_argv({})[0], "record", "-d", "1", "-o", file_});
  EXPECT_EQ(blind.status, 125);
  expect_one_complaint(blind);
  EXPECT_EQ(inside("\"$0\" debox -- true").status, 125);
}

TEST_F(CommandTest, UsageErrorsAreStatusTwo) {
  for (const Argv& argv : std::vector<Argv>{{},
                                            {"nonsense"},
                                            {"record", "--nonsense"},
                                            {"record", "-F", "0"},
                                            {"record", "-d", "-1"},
                                            {"record", "-d", "nan"},
                                            {"record", "-d", "inf"},
                                            {"record", "-d", "1e300"},
                                            {"record", "--budget", "nan"},
                                            {"debox", "--interval", "nan", "--", "true"},
                                            {"report", "--threshold", "nan"},
                                            {"record", "-p", "x"},
                                            {"record", "--"},
                                            {"report", "--view", "nonsense"}}) {
    const Finished done = run_pkprof(argv);
    EXPECT_EQ(done.status, 2) << testing::PrintToString(argv);
    expect_one_complaint(done);
  }
}

TEST_F(CommandTest, TargetsThatAreNotThere) {
  for (const Argv& target : std::vector<Argv>{{"-p", "4194000"}, {"--cgroup", "/no/such/group"}}) {
    Argv argv = {"record", "-d", "0.1", "-o", file_};
    argv.insert(argv.end(), target.begin(), target.end());
    const Finished done = run_pkprof(argv);
    EXPECT_EQ(done.status, 125) << testing::PrintToString(argv);
    expect_one_complaint(done);
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

TEST_F(CommandTest, DurationIsKept) {
  const Recording r = record({"-a", "-d", "0.5"});
  EXPECT_EQ(r.record.status, 0);
  EXPECT_EQ(r.record.err, "");
  EXPECT_GE(r.report.duration_ns, 480'000'000);
  EXPECT_LE(r.report.duration_ns, in_guest() ? 4'000'000'000 : 1'000'000'000);
  EXPECT_EQ(r.report.frequency_hz, 997);
}

// Elsewhere it is quiet, as the other tests see.
TEST_F(CommandTest, OnATerminalItSaysHowItGoes) {
  const std::string script = find_program("script");
  if (script.empty()) GTEST_SKIP() << "needs script";
  const auto on_terminal = [&](const std::string& options) {
    const std::string pkprof = pkprof_argv({}).front() + " record -o " + file_ + " ";
    return run_program({script, "-qec", pkprof + options, "/dev/null"});
  };
  const Finished done = on_terminal("-d 2.2");
  EXPECT_EQ(done.status, 0) << done.out;
  EXPECT_NE(done.out.find("recording: 1."), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("see them with: pkprof report " + file_), std::string::npos) << done.out;
  EXPECT_EQ(on_terminal("-q -d 1.2").out, "");
  EXPECT_EQ(on_terminal("-d 1.2 -- sleep 1.1").out.find("recording:"), std::string::npos)
      << "the terminal is the command's";
}

TEST_F(CommandTest, AnInterruptEndsTheRecordingAndKeepsIt) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove(file_);
    Running recording(pkprof_argv({"record", "-a", "-o", file_}));
    for (int i = 0; i < 600 && !waits_for_signals(recording.pid()); ++i)
      std::this_thread::sleep_for(50ms);
    std::this_thread::sleep_for(1s);
    recording.signal(number);
    EXPECT_EQ(recording.wait(), 0);
    EXPECT_EQ(recording.err(), "");
    EXPECT_GT(read_report(file_).samples_taken, 0);
  }
}

// What commands see of what they were given: limits, descriptors and environment (but for where
// debox's records come from), capabilities and signals.
const std::vector<Argv> look_around = {
    {"sh", "-c",
     "ulimit -Sn; ulimit -Hn; ulimit -Sl; ulimit -Hl; ls /proc/self/fd; "
     "env | grep -vE '^(_|PKPROF_DEBOX)=' | sort"},
    {"grep", "-E", "^(SigBlk|SigIgn|Cap|NoNew|Seccomp)", "/proc/self/status"}};

TEST_F(CommandTest, ACommandHasWhatTheCallerHad) {
  const Running::Options caller{.env = {"PKPROF_TEST=\nline"}, .before_exec = [] {
                                  const rlimit files{256, 4096};
                                  const rlimit memory{1 << 20, 2 << 20};
                                  setrlimit(RLIMIT_NOFILE, &files);
                                  setrlimit(RLIMIT_MEMLOCK, &memory);
                                  sigset_t blocked;
                                  sigemptyset(&blocked);
                                  sigaddset(&blocked, SIGUSR2);
                                  sigprocmask(SIG_BLOCK, &blocked, nullptr);
                                }};
  for (const Argv& look : look_around) {
    const std::string alone = run_program(look, caller).out;
    EXPECT_GT(std::ranges::count(alone, '\n'), 6) << alone;
    for (const Argv& by : std::vector<Argv>{
             {"record", "-o", file_, "--"}, {"stat", "--"}, {"hist", "--"}, {"debox", "--"}}) {
      Argv argv = by;
      argv.insert(argv.end(), look.begin(), look.end());
      EXPECT_EQ(run_pkprof(argv, caller).out.substr(0, alone.size()), alone) << by.front();
    }
  }
}

TEST_F(CommandTest, ItTakesTheDescriptorsItMayHave) {
  const auto record_with = [&](rlim_t soft, rlim_t hard) {
    return run_pkprof({"record", "-d", "0.2", "-o", file_}, {.before_exec = [=] {
                        const rlimit files{soft, hard};
                        setrlimit(RLIMIT_NOFILE, &files);
                      }});
  };
  EXPECT_EQ(record_with(40, 4096).status, 0);
  for (const rlim_t few : {40, 80, 90}) {
    std::filesystem::remove(file_);
    const Finished done = record_with(few, few);
    EXPECT_EQ(done.status, 125) << few;
    expect_one_complaint(done);
    EXPECT_NE(done.err.find("too many open files"), std::string::npos) << done.err;
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

// Its clocks are days ahead of the kernel's, or behind.
TEST_F(CommandTest, InATimeNamespace) {
  for (const char* ahead : {"1000000", "-10"}) {
    const Argv unshare = {
        find_program("unshare"), "-T", "--fork", "--monotonic", ahead, "--boottime", ahead};
    Argv argv = pkprof_argv({"record", "-o", file_, "--", testnet::sibling("pk_hog"), "--seconds",
                             in_guest() ? "5" : "1"});
    argv.insert(argv.begin(), unshare.begin(), unshare.end());
    const Finished done = run_program(argv);
    ASSERT_EQ(done.status, 0) << done.err;
    const Report report = read_report(file_);
    EXPECT_LT(report.duration_ns, 30'000'000'000);
    ASSERT_EQ(report.pids_of("pk_hog").size(), 1) << report.text;
    EXPECT_GT(report.find(*report.pids_of("pk_hog").begin())->user_ns, 500'000'000);
  }
}

TEST_F(CommandTest, TooLittleMemoryIsOneLine) {
  for (const rlim_t mib : {32, 40, 48, 50, 64, 80}) {
    const Finished done = run_pkprof({"record", "-d", "0.2", "-o", file_}, {.before_exec = [=] {
                                       const rlimit memory{mib << 20, mib << 20};
                                       setrlimit(RLIMIT_AS, &memory);
                                     }});
    EXPECT_EQ(done.status, 125) << mib;
    expect_one_complaint(done);
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

// Nothing was recorded that could be kept.
TEST_F(CommandTest, ASignalWhileItLoadsEndsIt) {
  for (const int number : {SIGINT, SIGTERM}) {
    Running recording(pkprof_argv({"record", "-o", file_, "--", "touch", dir_.file("ran")}));
    while (bpf_objects_of(recording.pid()).empty()) std::this_thread::sleep_for(1ms);
    recording.signal(number);
    EXPECT_EQ(recording.wait(), 128 + number);
    EXPECT_FALSE(std::filesystem::exists(file_));
    EXPECT_FALSE(std::filesystem::exists(dir_.file("ran")));
  }
}

TEST_F(CommandTest, TheRestIsOther) {
  const int other = stage_.start_hog(last_cpu());
  // An emulated CPU stands still for milliseconds, and a sample stands for as long.
  const std::string seconds = in_guest() ? "5" : "1";
  const Finished done = record_command({testnet::sibling("pk_hog"), "--seconds", seconds}, "100");
  EXPECT_EQ(done.status, 0);
  const Report report = read_report(file_);
  const std::set<int> hogs = report.pids_of("pk_hog");
  ASSERT_EQ(hogs.size(), 1) << report.text;
  EXPECT_FALSE(hogs.contains(other));
  EXPECT_EQ(report.find(other), nullptr);
  EXPECT_GT(report.other_ns, 100'000'000);
  // The hog itself says what it used, with the interrupts that came while it ran.
  const json said = json::parse(done.out.substr(done.out.find('{')));
  const double used = said.at("user_ns").get<double>() + said.at("system_ns").get<double>();
  const uint64_t ran = report.charged_to(*hogs.begin()) + report.find(*hogs.begin())->stolen_ns;
  EXPECT_NEAR(static_cast<double>(ran), used, 0.1 * used) << report.text;
}

TEST_F(CommandTest, ChildrenOfATargetAreFollowed) {
  const int parent = stage_.start(nullptr, {"pk_spawn", "--rate", "50"}, -1, false);
  const int other = stage_.start_hog(last_cpu());
  const Recording r = record({"-p", std::to_string(parent), "-d", "1.5"});
  EXPECT_EQ(r.record.status, 0);
  EXPECT_NE(r.report.find(parent), nullptr);
  EXPECT_GE(r.report.pids_running("pk_spawn").size(), in_guest() ? 3 : 10) << r.report.text;
  EXPECT_EQ(r.report.find(other), nullptr);
  EXPECT_GT(r.report.other_ns, 100'000'000);
}

TEST_F(CommandTest, ACgroupWithAllBelowIt) {
  PKPROF_NEEDS("cgroups");
  const Cgroup group;
  Stage stage;  // ends before the group goes
  const int inside = stage.start_hog(last_cpu());
  const int outside = stage.start_hog(last_cpu());
  group.add(inside);
  const Recording r = record({"--cgroup", group.path(), "-d", "1"});
  EXPECT_EQ(r.record.status, 0);
  ASSERT_NE(r.report.find(inside), nullptr) << r.report.text;
  EXPECT_EQ(group.name(), r.report.find(inside)->cgroup);
  EXPECT_GT(r.report.charged_to(inside), 50'000'000);
  EXPECT_EQ(r.report.find(outside), nullptr);
  EXPECT_GT(r.report.other_ns, 50'000'000);
}

}  // namespace
}  // namespace pkprof::live
