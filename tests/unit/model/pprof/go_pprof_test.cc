// SPDX-License-Identifier: Apache-2.0
// The file is pprof because other people's tools say so: here `go tool pprof`.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "model/file.h"
#include "model/pprof/pprof.h"
#include "random_profile.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;

struct Output {
  int status = -1;
  std::string text;
};

Output shell(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.text.append(buffer, n);
  output.status = pclose(pipe);
  return output;
}

class GoPprof : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("go version").status != 0) GTEST_SKIP() << "go is not installed";
    std::string name = (fs::temp_directory_path() / "pkprof-go-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_TRUE(write_profile(test::small_machine(), file()));
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }
  [[nodiscard]] std::string file() const { return directory_ / "profile.pb.gz"; }
  [[nodiscard]] Output pprof(const std::string& arguments) const {
    return shell("PPROF_TMPDIR=" + directory_.string() + " go tool pprof " + arguments);
  }

  fs::path directory_;
};

void expect_has(const Output& output, std::initializer_list<const char*> wanted) {
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* text : wanted)
    EXPECT_NE(output.text.find(text), std::string::npos) << text << " in\n" << output.text;
}

TEST_F(GoPprof, Top) {
  const Output top = pprof("-top " + file());
  expect_has(top, {"Type: cpu", "Duration: 10s", "Total samples = 18.90s", "[no stack]",
                   "tcp_v4_rcv", "ngx_http_parse_request_line", "2.59s"});
  EXPECT_EQ(top.text.find("pkprof.meta"), std::string::npos) << "the comment stays out of sight";
  EXPECT_EQ(top.text.find('\x1b'), std::string::npos) << "names are harmless";
}

TEST_F(GoPprof, TracesShowWhoRanAndWhoWasServed) {
  expect_has(pprof("-traces " + file()),
             {"ran-on:  ksoftirqd/1:22", "served:  nginx:812", "source:  softirq:NET_RX",
              "basis:  consumed", "cgroup:  /system.slice/nginx.service", "thread:  812",
              "redis-server:900#2", "UNCLAIMED:dropped", R"(\x1b[2J\xff)"});
}

TEST_F(GoPprof, SelectsByLabel) {
  const Output nginx = pprof("-top -tagfocus=served=nginx:812 " + file());
  expect_has(nginx, {"tcp_v4_rcv", "2.45s"});
  EXPECT_EQ(nginx.text.find("wb_writeback"), std::string::npos);
}

TEST_F(GoPprof, SamplesAreTheOtherType) {
  expect_has(pprof("-top -sample_index=samples " + file()), {"Type: samples", "2590"});
}

// What pprof has read and written again is still ours, though it renumbers everything.
TEST_F(GoPprof, ThroughPprofAndBack) {
  const std::string again = directory_ / "again.pb.gz";
  expect_has(pprof("-symbolize=demangle=none -proto -output=" + again + " " + file()), {});
  const Result<Profile> back = read_profile(again);
  ASSERT_TRUE(back) << back.error().message;
  const auto got = test::described(*back);
  const auto want = test::described(test::small_machine());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]);
}

}  // namespace
}  // namespace pkprof
