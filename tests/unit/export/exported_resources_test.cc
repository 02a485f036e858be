// SPDX-License-Identifier: Apache-2.0
// Exports of resources other than CPU time: who woke the waiter stands on its stack, and bytes are
// no time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/formats.h"
#include "golden.h"
#include "model/merge.h"
#include "usage_fixture.h"
#include "waits_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;

std::string exported_text(const char* format, const Profile& profile) {
  const auto text = export_format(format)->write(profile, {});
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

// By a folded line's frames up to `end`, if that is in it.
std::map<std::string, uint64_t> sums_up_to(const std::string& folded, const char* end) {
  std::map<std::string, uint64_t> sums;
  std::istringstream lines(folded);
  for (std::string line; std::getline(lines, line);)
    sums[line.substr(0, std::min(line.find(end), line.rfind(' ')))] +=
        std::stoull(line.substr(line.rfind(' ') + 1));
  return sums;
}

Profile waits_alone() {
  return of_resource(test::waits_machine(), Resource::wait);
}

TEST(WaitExports, EndWithWhoWokeTheWaiter) {
  const Profile waits = waits_alone();
  const std::string folded = exported_text("folded", waits);
  test::expect_golden("export-folded-waits.txt", folded);
  test::expect_harmless(folded, SIZE_MAX);
  // By the waiter's own frames it is what it is without wakers.
  const Profile without = rekeyed(waits, [](Profile&, SampleKey& key) { key.wakeup = 0; });
  const std::string plain = exported_text("folded", without);
  EXPECT_EQ(plain.find("woken by"), std::string::npos);
  EXPECT_EQ(sums_up_to(folded, ";«woken by "), sums_up_to(plain, "\n"));
}

// A function of both is two, so that each has its own time.
TEST(WaitExports, KeepTheWakersFunctionsApart) {
  const json all = json::parse(exported_text("speedscope", waits_alone()));
  const json& frames = all.at("shared").at("frames");
  size_t mains = 0;
  for (const json& frame : frames) mains += frame.at("name") == "main";
  EXPECT_EQ(mains, 2U);
  const json& worker = all.at("profiles")[0];
  EXPECT_EQ(worker.at("name"), "worker:77");
  std::vector<std::string> path;
  for (const json& frame : worker.at("samples")[0])
    path.push_back(frames[frame.get<size_t>()].at("name"));
  EXPECT_EQ(path.front(), "main");
  EXPECT_EQ(std::ranges::count_if(path, [](auto& s) { return s.starts_with("«woken by "); }), 1);
}

TEST(WaitExports, FirefoxColoursWakersApart) {
  const json all = json::parse(exported_text("firefox", waits_alone()));
  const json& thread = all.at("threads")[0];
  std::map<std::string, std::string> category_of;
  for (size_t i = 0; i < thread.at("funcTable").at("length"); ++i) {
    const size_t name = thread.at("funcTable").at("name")[i];
    const size_t category = thread.at("frameTable").at("category")[i];
    category_of[thread.at("stringArray")[name]] =
        all.at("meta").at("categories")[category].at("name");
  }
  EXPECT_EQ(category_of["wait_for_reply"], "User");
  EXPECT_EQ(category_of["schedule"], "Kernel");
  for (const char* name : {"«woken by postgres:812»", "send_answer", "try_to_wake_up"})
    EXPECT_EQ(category_of[name], "Who ended the wait") << name;
}

TEST(WaitExports, JsonHasTheWakeups) {
  const json all = json::parse(exported_text("json", test::waits_machine()));
  std::map<std::string, uint64_t> by_waker;
  for (const json& sample : all.at("samples")) {
    if (!sample.contains("wakeup")) continue;
    const json& wakeup = all.at("wakeups")[sample.at("wakeup").get<size_t>()];
    const json& label = all.at("labels")[wakeup.at("label").get<size_t>()];
    by_waker[label.value("comm", "")] += sample.at("ns").get<uint64_t>();
    EXPECT_FALSE(all.at("stacks")[wakeup.at("stack").get<size_t>()].empty());
  }
  EXPECT_EQ(by_waker["postgres"], 2'100'000'000U);
  const json cpu =
      json::parse(exported_text("json", of_resource(test::waits_machine(), Resource::cpu)));
  EXPECT_FALSE(cpu.contains("wakeups"));
}

TEST(UsageExports, AreInBytes) {
  const Profile disk = of_resource(test::UsageMachine().profile, Resource::disk);
  const json speedscope = json::parse(exported_text("speedscope", disk)).at("profiles")[0];
  EXPECT_EQ(speedscope.at("unit"), "bytes");
  EXPECT_EQ(speedscope.at("endValue"), 320 << 20);
  const json samples = json::parse(exported_text("firefox", disk)).at("threads")[0].at("samples");
  EXPECT_EQ(samples.at("weightType"), "bytes");
  EXPECT_EQ(samples.at("weight"), json({300 << 20, 20 << 20}));
  const Profile lock = of_resource(test::UsageMachine().profile, Resource::lock);
  EXPECT_EQ(json::parse(exported_text("speedscope", lock)).at("profiles")[0].at("unit"),
            "nanoseconds");
}

}  // namespace
}  // namespace pkprof
