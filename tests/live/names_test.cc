// SPDX-License-Identifier: Apache-2.0
// Names of functions that a program's file does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "model/pprof/pprof.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

class DebuginfodTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (find_program("debuginfod").empty()) GTEST_SKIP() << "needs debuginfod";
    const std::string program = testnet::sibling("pk_frames_O2_omit");
    std::filesystem::create_directory(dir_.file("served"));
    must(testnet::run_command({"objcopy", "--only-keep-debug", program, dir_.file("served/x")}));
    must(testnet::run_command({"strip", "-o", dir_.file("stripped"), program}));
  }

  std::set<std::string> functions(const std::string& urls) {
    const Finished done = run_pkprof(
        {"record", "-o", dir_.file("profile"), "--", dir_.file("stripped"), "0.05"},
        {.env = {"DEBUGINFOD_URLS=" + urls, "DEBUGINFOD_CACHE_PATH=" + dir_.file("cache")}});
    EXPECT_EQ(done.status, 0) << done.err;
    const Profile profile = must(read_profile(dir_.file("profile")));
    std::set<std::string> names;
    for (const Frame& frame : profile.frames())
      if (frame.kind == FrameKind::user) names.insert(profile.text(frame.function));
    incomplete_.clear();
    for (const std::string& sentence : profile.meta.degraded) incomplete_ += sentence + "\n";
    return names;
  }

  TempDir dir_;
  Stage stage_;
  std::string incomplete_;
};

TEST_F(DebuginfodTest, NamesFunctionsOfStrippedFiles) {
  const auto without = functions("");
  EXPECT_FALSE(without.contains("spin"));
  EXPECT_TRUE(std::ranges::any_of(
      without, [](const std::string& name) { return name.starts_with("stripped+0x"); }));
  EXPECT_EQ(incomplete_.find("debuginfod"), std::string::npos) << incomplete_;

  const std::string port = "8043";
  stage_.start(nullptr,
               {"debuginfod", "-F", "-p", port, "-d", dir_.file("database"), dir_.file("served")},
               -1, false);
  const std::string url = "http://127.0.0.1:" + port;
  std::set<std::string> with;
  for (int i = 0; i < 20 && !with.contains("spin"); ++i) {  // until it has looked at its files
    std::filesystem::remove_all(dir_.file("cache"));
    std::this_thread::sleep_for(300ms);
    with = functions(url);
  }
  EXPECT_TRUE(with.contains("spin")) << incomplete_;
  EXPECT_TRUE(with.contains("main"));
  EXPECT_FALSE(std::ranges::any_of(
      with, [](const std::string& name) { return name.starts_with("stripped+0x"); }));
}

TEST_F(DebuginfodTest, AServerThatIsNotThereIsTold) {
  const auto names = functions("http://127.0.0.1:1");
  EXPECT_FALSE(names.contains("spin"));
  EXPECT_NE(incomplete_.find("no names from debuginfod of "), std::string::npos) << incomplete_;
}

}  // namespace
}  // namespace pkprof::live
