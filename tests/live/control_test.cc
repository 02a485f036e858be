// SPDX-License-Identifier: Apache-2.0
// Recordings that are paused and go on: what is not to be recorded is not in them, and what is left
// adds up and is for those that it is for.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Pair;
using Clock = std::chrono::steady_clock;

// `pkprof record` that begins paused, and listens to us.
class Controlled {
 public:
  explicit Controlled(const Argv& arguments = {}) {
    for (const char* name : {"commands", "answers"})
      if (mkfifo(dir_.file(name).c_str(), 0600)) throw std::runtime_error("mkfifo");
    commands_ = Fd(open(dir_.file("commands").c_str(), O_RDWR | O_CLOEXEC));
    answers_ = Fd(open(dir_.file("answers").c_str(), O_RDWR | O_CLOEXEC));
    Argv argv = {"record",    "--paused",
                 "-o",        dir_.file("profile"),
                 "--control", "fifo:" + dir_.file("commands") + "," + dir_.file("answers")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    record_.emplace(pkprof_argv(argv));
    say("ping");
  }

  void write_line(const std::string& line) const {
    const std::string text = line + "\n";
    if (write(commands_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("writing a command");
  }
  // Waits until it is done.
  void say(const std::string& command) const {
    write_line(command);
    pollfd ready{answers_.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(patience().count())) != 1)
      throw std::runtime_error("no answer to " + command + ": " + record_->err());
    char answer[4];
    if (read(answers_.get(), answer, sizeof(answer)) != sizeof(answer) ||
        std::string_view(answer, sizeof(answer)) != "ack\n")
      throw std::runtime_error("another answer than ack to " + command);
  }
  // One piece of the recording.
  void record(std::chrono::milliseconds length) {
    const auto before = Clock::now();
    say("enable");
    const auto on = Clock::now();
    std::this_thread::sleep_for(length);
    shortest_ += Clock::now() - on;
    say("disable");
    longest_ += Clock::now() - before;
  }
  // How long the pieces were, as far as that can be told from here.
  [[nodiscard]] std::chrono::nanoseconds longest() const { return longest_; }
  void expect_duration(const Report& report) const {
    EXPECT_GE(report.duration_ns, static_cast<uint64_t>(shortest_.count()));
    EXPECT_LE(report.duration_ns, static_cast<uint64_t>(longest_.count()));
  }
  Report finish() {
    say("stop");
    EXPECT_EQ(record_->wait(), 0) << record_->err();
    return read_report(dir_.file("profile"));
  }
  [[nodiscard]] Running& process() { return *record_; }
  [[nodiscard]] std::string profile() const { return dir_.file("profile"); }

 private:
  TempDir dir_;
  Fd commands_;
  Fd answers_;
  std::optional<Running> record_;
  std::chrono::nanoseconds shortest_{0};
  std::chrono::nanoseconds longest_{0};
};

// Links to tracepoints and functions that a process holds.
int hooks_of(int pid) {
  int hooks = 0;
  for (const auto& file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo")) {
    std::ifstream info(file.path());
    for (std::string line; std::getline(info, line);)
      hooks += line == "link_type:\traw_tracepoint" || line == "link_type:\ttracing";
  }
  return hooks;
}

class ControlTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }
  Turn turn_{Turn::Kind::beside_others};
};

class ControlledTimeTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }
  Turn turn_;
  Stage stage_;
};

TEST_F(ControlledTimeTest, IsWithoutPauses) {
  const int hog = stage_.start_hog(last_cpu());
  Controlled recording;
  std::this_thread::sleep_for(300ms);
  for (int i = 0; i < 3; ++i) {
    recording.record(400ms);
    std::this_thread::sleep_for(700ms);
  }
  const Report report = recording.finish();
  recording.expect_duration(report);
  const double share =
      static_cast<double>(report.charged_to(hog)) / static_cast<double>(report.duration_ns);
  // It cannot have what the host took; and sampling takes an emulated CPU.
  const double stolen =
      static_cast<double>(report.steal_ns) / static_cast<double>(report.duration_ns);
  EXPECT_GT(share + stolen, in_guest() ? 0.1 : 0.9) << describe(report);
  EXPECT_LE(share, 1.0) << describe(report);
  // Each piece begins anew, and its clocks stood still before it.
  EXPECT_LE(report.samples_taken, report.cpus * (report.samples(report.duration_ns) + 6));
  const uint64_t paused = nlohmann::json::parse(report.text).at("paused_ns");
  EXPECT_GT(paused, 2 * 700'000'000u);
  for (const std::string& sentence : report.degraded)
    EXPECT_EQ(sentence.find("paused"), std::string::npos) << sentence;
}

// But for the few that note who owns what for long: files that become dirty, work that is queued,
// CPUs that go.
TEST_F(ControlTest, HardlyAnythingIsAttachedInAPause) {
  constexpr int lasting = 12;
  Controlled recording;
  const int pid = recording.process().pid();
  EXPECT_LE(hooks_of(pid), lasting);
  recording.say("enable");
  recording.say("enable");
  EXPECT_GT(hooks_of(pid), 20);
  recording.say("disable");
  EXPECT_LE(hooks_of(pid), lasting);
  recording.say("disable");
  recording.say("enable");
  EXPECT_GT(hooks_of(pid), 20);
  static_cast<void>(recording.finish());
}

TEST_F(ControlledTimeTest, IsUpWithoutPauses) {
  const auto before = Clock::now();
  const double seconds = in_guest() ? 10 : 0.6;  // longer than the first piece
  Controlled recording({"-d", std::to_string(seconds)});
  recording.record(200ms);
  std::this_thread::sleep_for(800ms);
  recording.say("enable");
  EXPECT_EQ(recording.process().wait(), 0);
  const Report report = read_report(recording.profile());
  EXPECT_GE(static_cast<double>(report.duration_ns) / 1e9, seconds);
  EXPECT_LT(report.duration_ns, static_cast<uint64_t>((Clock::now() - before).count()));
  if (!in_guest()) {
    EXPECT_LT(report.duration_ns, 800'000'000u);
  }
}

TEST_F(ControlTest, SaysThatNothingWasRecorded) {
  Controlled recording;
  recording.write_line("enable everything");
  recording.say("ping");
  recording.process().signal(SIGINT);
  EXPECT_EQ(recording.process().wait(), 0);
  EXPECT_NE(recording.process().err().find("no command \"enable everything\""), std::string::npos)
      << recording.process().err();
  const Report report = read_report(recording.profile());
  EXPECT_EQ(report.duration_ns, 0u);
  EXPECT_EQ(report.samples_taken, 0u);
  // What else is said may be of tests beside this one.
  EXPECT_EQ(
      std::ranges::count(report.degraded, "nothing was recorded: it was paused up to its end"), 1)
      << testing::PrintToString(report.degraded);
}

TEST_F(ControlTest, CommandsEndAlsoInAPause) {
  const TempDir dir;
  const std::string fifo = dir.file("commands");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Finished done = run_pkprof({"record", "--paused", "--control", "fifo:" + fifo, "-o",
                                    dir.file("profile"), "--", "sh", "-c", "exit 7"});
  EXPECT_EQ(done.status, 7) << done.err;
}

TEST_F(ControlTest, EndsWhenNobodyCanHaveItGoOn) {
  const Finished done = run_program({"/bin/sh", "-c",
                                     "echo ping | " + testnet::sibling("pkprof") +
                                         " record --paused -o /dev/null " + "--control fd:0"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.err.find("no more commands can come"), std::string::npos) << done.err;
}

TEST_F(ControlTest, RefusesWhatCannotBe) {
  const TempDir dir;
  const Finished alone = run_pkprof({"record", "--paused", "-d", "0.1"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.err.find("--paused without --control"), std::string::npos) << alone.err;
  const Finished none =
      run_pkprof({"record", "--control", "fifo:" + dir.file("none"), "-d", "0.1"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("make it with mkfifo"), std::string::npos) << none.err;
}

class ControlledNetworkTest : public PairTest {};

TEST_F(ControlledNetworkTest, PacketsAreTheirReceiversInEachPiece) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  Controlled recording({"-F", "1997"});
  for (int i = 0; i < 5; ++i) {
    recording.record(300ms);
    std::this_thread::sleep_for(100ms);
  }
  const Report report = recording.finish();
  recording.expect_duration(report);
  const std::set<int> pinned = {receiver, sender};
  const Shares shares = received_elsewhere(report, {receiver}, hog_, pinned);
  expect_shares(report, shares, 98, 2);
}

// What was known of a port before the pause is not true after it, whether all of a piece is watched
// or windows of it.
class PortTest : public PairTest, public testing::WithParamInterface<bool> {};

// What counts in these slots of the timeline, by whom it was for; under 0, all of it.
std::map<int, double> served_in_slots(const std::string& profile, uint64_t first, uint64_t last,
                                      const std::function<bool(const Flow&)>& counts) {
  const Finished exported = run_pkprof({"export", "--to", "json", profile});
  EXPECT_EQ(exported.status, 0) << exported.err;
  const nlohmann::json all = nlohmann::json::parse(exported.out);
  const auto pid_of = [&](const nlohmann::json& label) {
    const nlohmann::json& l = all.at("labels").at(label.get<size_t>());
    return l.value("pid", l.at("kind") == "unclaimed" ? kUnclaimed : kKernel);
  };
  std::map<int, double> served;
  for (const auto& cell : all.at("timeline").at("cells")) {
    const uint64_t slot = cell.at("slot");
    const Flow flow{.ran_on = pid_of(cell.at("ran_on")),
                    .served = pid_of(cell.at("served")),
                    .source = cell.at("source"),
                    .ns = cell.at("ns")};
    if (slot < first || slot > last || !counts(flow)) continue;
    served[flow.served] += static_cast<double>(flow.ns);
    served[0] += static_cast<double>(flow.ns);
  }
  return served;
}

TEST_P(PortTest, IsItsNewHoldersAfterAPause) {
  const bool in_windows = GetParam();
  const Argv receive = {"pk_udp", "recv", "--port", "7001"};
  const int first = serve(receive);
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  Controlled recording({"--budget", in_windows ? "1" : "100", "-F", "1997"});
  recording.record(1100ms);
  const auto up_to = recording.longest();
  stage_.stop(first);
  const int second = serve(receive);
  // From one window to the next it may take a while.
  recording.record(std::chrono::ceil<std::chrono::milliseconds>(up_to) +
                   (in_windows ? 9s : 1100ms));
  const Report report = recording.finish();
  const std::set<int> pinned = {first, second, sender};
  const Shares shares = received_elsewhere(report, {first, second}, hog_, pinned);
  expect_shares(report, shares, 98, 2);
  if (in_guest()) GTEST_SKIP() << "which piece it was in is told by a timeline that is too coarse";
  constexpr double right = 0.98;
  const auto received = [&](const Flow& f) { return is_received_elsewhere(f, pinned); };
  auto served = served_in_slots(recording.profile(), 0, 0, received);
  EXPECT_GT(served[0], 0);
  EXPECT_GE(served[first], right * served[0]) << testing::PrintToString(served);
  // The first piece's window is shorter than a slot, and what it stands for up to the pause is in
  // that slot.
  const uint64_t after = in_windows ? 1 : up_to / 1s + 1;
  served = served_in_slots(recording.profile(), after, UINT64_MAX, received);
  EXPECT_GT(served[0], 0);
  EXPECT_GE(served[second], right * served[0]) << testing::PrintToString(served);
  // Nor are the calls unclaimed by which packets are steered.
  served = served_in_slots(recording.profile(), after, UINT64_MAX,
                           [](const Flow& f) { return f.source == "ipi:rps_trigger_softirq"; });
  EXPECT_LE(served[kUnclaimed], served[0] / 20) << testing::PrintToString(served);
}

INSTANTIATE_TEST_SUITE_P(Hooks, PortTest, testing::Bool(), [](const auto& in_windows) {
  return in_windows.param ? std::string("InWindows") : std::string("AllOn");
});

}  // namespace
}  // namespace pkprof::live
