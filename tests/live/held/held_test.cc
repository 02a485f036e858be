// SPDX-License-Identifier: Apache-2.0
// start, dump, reset, stop: a recording with no process of ours in between.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "held/held.h"

namespace pkprof::live {
namespace {

using testnet::Pair;
using Clock = std::chrono::steady_clock;

// The kernel's objects of one kind that have a name of ours.
std::set<int> objects(const char* kind) {
  std::set<int> ids;
  const Finished f = run_program({find_program("bpftool"), "-j", kind, "show"});
  for (const auto& object : nlohmann::json::parse(f.out)) {
    const std::string name = object.value("name", "");
    if (name.starts_with("pk_") || name.starts_with("pkprof_")) ids.insert(object.value("id", 0));
  }
  return ids;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Everything of the first is in the second, which came later.
void expect_more(const Report& later, const Report& earlier) {
  EXPECT_GT(later.duration_ns, earlier.duration_ns);
  EXPECT_GE(later.samples_taken, earlier.samples_taken);
  for (const Process& p : earlier.processes) {
    const Process* now = later.find(p.pid);
    ASSERT_NE(now, nullptr) << p.comm;
    EXPECT_GE(now->user_ns + now->own_ns, p.user_ns + p.own_ns) << p.comm;
  }
}

TEST_F(HeldNetworkTest, GoesOnByItself) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const auto expect_charged = [&](const Report& report) {
    expect_shares(report, received_elsewhere(report, {receiver}, hog_, {receiver, sender}), 98, 1);
  };
  const auto begun = Clock::now();
  expect_ok(run_pkprof({"start", "-F", in_guest() ? "199" : "997"}));
  const auto started = Clock::now();
  rest(2);
  const auto asked = Clock::now();
  const Report first = dump("first.pb.gz");
  EXPECT_GE(static_cast<double>(first.duration_ns) / 1e9,
            std::chrono::duration<double>(asked - started).count());
  EXPECT_LE(static_cast<double>(first.duration_ns) / 1e9, seconds_since(begun));
  expect_charged(first);

  rest(1);
  const Report second = dump("second.pb.gz");
  expect_charged(second);
  expect_more(second, first);

  const auto resetting = Clock::now();
  expect_ok(run_pkprof({"reset"}));
  rest(2);
  const Report anew = dump("anew.pb.gz");
  EXPECT_LE(static_cast<double>(anew.duration_ns) / 1e9, seconds_since(resetting));
  EXPECT_LE(anew.samples_taken, anew.cpus * anew.duration_ns * anew.frequency_hz / 900'000'000);
  expect_charged(anew);

  expect_ok(run_pkprof({"stop"}));
  const Report last = dump("last.pb.gz");
  expect_charged(last);
  expect_more(last, anew);
}

// What is not ours to see is not looked at: only what the recording adds, and that it goes.
TEST_F(HeldTest, NothingIsLeftInTheKernel) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  // What an earlier recording leaves goes meanwhile.
  std::map<const char*, std::set<int>> before;
  for (const char* kind : {"prog", "map", "link"}) before[kind] = objects(kind);
  const auto fresh = [&](const char* kind) {
    return std::ranges::count_if(objects(kind), [&](int id) { return !before[kind].contains(id); });
  };
  expect_ok(run_pkprof({"start"}));
  EXPECT_GT(fresh("prog"), 10);
  EXPECT_GT(fresh("map"), 3);
  rest(0.3);
  expect_ok(run_pkprof({"stop", "-o", dir_.file("all.pb.gz")}));
  EXPECT_GT(read_report(dir_.file("all.pb.gz")).samples_taken, 0);
  EXPECT_FALSE(std::filesystem::exists(pins_dir));
  EXPECT_FALSE(std::filesystem::exists(kept_dir));
  for (const auto& [kind, ids] : before) {
    std::set<int> now;
    for (int i = 0; i < 100; ++i) {  // the kernel frees them after a grace period
      now = objects(kind);
      if (std::ranges::includes(ids, now)) break;
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_TRUE(std::ranges::includes(ids, now)) << kind;
  }
}

TEST_F(HeldTest, WithNothingStarted) {
  for (const char* command : {"stop", "reset", "dump", "status"})
    expect_refused(run_pkprof({command}), "nothing is being recorded: `pkprof start` begins");
}

TEST_F(HeldTest, ThereIsOneOnly) {
  expect_ok(run_pkprof({"start"}));
  expect_refused(run_pkprof({"start"}), "a recording goes on already");
  const auto status = nlohmann::json::parse(run_pkprof({"status", "--json"}).out);
  EXPECT_EQ(status.at("stopped"), false);
  EXPECT_GT(status.at("cpus"), 0);
  EXPECT_GT(status.at("duration_ns"), 0);
  EXPECT_GE(status.at("cost"), 0);
  const Finished text = run_pkprof({"status"});
  EXPECT_NE(text.out.find("recording since "), std::string::npos) << text.out;
}

TEST_F(HeldTest, AStoppedOneWaitsToBeDumped) {
  expect_ok(run_pkprof({"start"}));
  rest(0.3);
  expect_ok(run_pkprof({"stop"}));
  EXPECT_FALSE(std::filesystem::exists(pins_dir));
  EXPECT_EQ(dump("a.pb.gz").samples_taken, dump("b.pb.gz").samples_taken);
  expect_ok(run_pkprof({"reset"}));
  EXPECT_FALSE(std::filesystem::exists(kept_dir));
  expect_refused(run_pkprof({"dump", "-o", dir_.file("c.pb.gz")}), "nothing is being recorded");

  expect_ok(run_pkprof({"start"}));
  expect_ok(run_pkprof({"stop"}));
  expect_ok(run_pkprof({"start"}));
  EXPECT_FALSE(std::filesystem::exists(kept_dir)) << "of an earlier recording";
}

// At whatever moment it is killed: the next one starts.
TEST_F(HeldTest, AStartThatIsKilledHoldsNothingUp) {
  const int steps = in_guest() ? 3 : 12;
  for (int i = 0; i < steps; ++i) {
    Running start(pkprof_argv({"start"}));
    std::this_thread::sleep_for(std::chrono::milliseconds((in_guest() ? 1000 : 30) * i));
    start.signal(SIGKILL);
    start.wait();
    const bool is_whole = run_pkprof({"status"}).status == 0;
    if (is_whole) expect_ok(run_pkprof({"stop"}));
    expect_ok(run_pkprof({"start"}));
    expect_ok(run_pkprof({"stop"}));
  }
}

// A profile that cannot be written is not lost with the recording.
TEST_F(HeldTest, AStopThatCannotWriteCanBeTriedAgain) {
  expect_ok(run_pkprof({"start"}));
  rest(0.3);
  EXPECT_EQ(run_pkprof({"stop", "-o", dir_.file("no/such/directory")}).status, 125);
  const Finished status = run_pkprof({"status"});
  EXPECT_NE(status.out.find("stopped"), std::string::npos) << status.out;
  const Report once = dump("once.pb.gz");
  expect_ok(run_pkprof({"stop", "-o", dir_.file("again.pb.gz")}));
  const Report again = read_report(dir_.file("again.pb.gz"));
  EXPECT_EQ(again.duration_ns, once.duration_ns);
  EXPECT_EQ(again.samples_taken, once.samples_taken);
  EXPECT_FALSE(std::filesystem::exists(pins_dir));
}

}  // namespace
}  // namespace pkprof::live
