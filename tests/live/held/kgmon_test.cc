// SPDX-License-Identifier: Apache-2.0
// pkgmon: held recordings by kgmon's flags, of which a halt is a pause.
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "held/held.h"

namespace pkprof::live {
namespace {

// kgmon's way: each flag a command, several in kgmon's order.
TEST_F(HeldTest, ByKgmonsFlags) {
  const auto pkgmon = [&](Argv flags, const std::string& state) {
    flags.insert(flags.begin(), testnet::sibling("pkgmon"));
    const Finished f = run_program(flags);
    expect_ok(f);
    EXPECT_TRUE(f.out.ends_with("pkgmon: kernel profiling is " + state + ".\n")) << f.out;
    return f.out;
  };
  const auto recorded_seconds = [](const std::string& text) {  // of "… = 2 CPUs x 1.5 s"
    const size_t at = text.find("CPUs x ");
    if (at == std::string::npos) return 0.0;
    const double number = std::stod(text.substr(at + 7));
    return text.find(" ms", at) == std::string::npos ? number : number / 1000;
  };
  pkgmon({}, "off");
  pkgmon({"-b"}, "running");
  rest(1.5);
  const std::string first = pkgmon({"-p", "-o", dir_.file("first")}, "running");
  EXPECT_GE(recorded_seconds(first), 1.5) << first;
  EXPECT_TRUE(std::filesystem::exists(dir_.file("first/gmon.out.all")));
  pkgmon({"-r"}, "running");
  rest(0.5);
  // What is written is what was before the reset; the halt comes last.
  const std::string second = pkgmon({"-h", "-p", "-o", dir_.file("second")}, "off");
  EXPECT_GE(recorded_seconds(second), 0.5);
  EXPECT_LT(recorded_seconds(second), recorded_seconds(first)) << second;
  const std::string after = pkgmon({"-p", "-r", "-o", dir_.file("kept")}, "off");
  EXPECT_GE(recorded_seconds(after), recorded_seconds(second));
  expect_refused(run_program({testnet::sibling("pkgmon"), "-p"}), "nothing is being recorded");
}

// As kgmon: a halt is a pause, until what was counted is reset.
TEST_F(HeldTest, KgmonGoesOnWithWhatItHalted) {
  const auto pkgmon = [&](Argv flags) {
    flags.insert(flags.begin(), testnet::sibling("pkgmon"));
    expect_ok(run_program(flags));
  };
  pkgmon({"-b"});
  rest(0.5);
  pkgmon({"-h"});
  const Report first = dump("first.pb.gz");
  rest(1.5);  // of which nothing counts
  const auto resumed = std::chrono::steady_clock::now();
  pkgmon({"-b"});
  EXPECT_EQ(nlohmann::json::parse(run_pkprof({"status", "--json"}).out).at("resumed"), true);
  rest(0.5);
  const Report both = dump("both.pb.gz");
  const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - resumed;
  const uint64_t half = in_guest() ? 2'000'000'000 : 500'000'000;
  EXPECT_GE(both.duration_ns, first.duration_ns + half);
  EXPECT_LT(both.duration_ns, first.duration_ns + static_cast<uint64_t>(since.count()));
  EXPECT_GT(both.samples_taken, first.samples_taken);
  pkgmon({"-h"});
  const uint64_t halted = dump("halted.pb.gz").duration_ns;
  EXPECT_GE(halted, both.duration_ns);
  pkgmon({"-b"});
  pkgmon({"-r"});
  EXPECT_LT(dump("reset.pb.gz").duration_ns, halted) << "what was halted is forgotten";
  expect_ok(run_pkprof({"stop", "-o", dir_.file("last.pb.gz")}));
  EXPECT_FALSE(std::filesystem::exists(kept_dir));

  // A start begins anew.
  pkgmon({"-b"});
  pkgmon({"-h"});
  expect_ok(run_pkprof({"start"}));
  EXPECT_FALSE(std::filesystem::exists(kept_dir));
}

TEST_F(HeldTest, WhatWasHaltedOutlivesAKilledBegin) {
  const Argv begin = {testnet::sibling("pkgmon"), "-b"};
  expect_ok(run_program(begin));
  rest(0.3);
  expect_ok(run_program({testnet::sibling("pkgmon"), "-h"}));
  uint64_t before = dump("halted.pb.gz").duration_ns;
  const int steps = in_guest() ? 3 : 12;
  for (int i = 0; i < steps; ++i) {
    Running start(begin);
    std::this_thread::sleep_for(std::chrono::milliseconds((in_guest() ? 1000 : 30) * i));
    start.signal(SIGKILL);
    start.wait();
    run_pkprof({"stop"});  // of what there is
    const uint64_t now = dump("after.pb.gz").duration_ns;
    EXPECT_GE(now, before) << "step " << i;
    before = now;
  }
}

}  // namespace
}  // namespace pkprof::live
