// SPDX-License-Identifier: Apache-2.0
// Other resources than CPU time, all at once: that they are there, whose they are, and that the
// ledger is as without them. How right the figures are is for the accuracy suite.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "model/pprof/pprof.h"
#include "scenario.h"
#include "testdisk.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

class ResourcesTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }
  json view(const char* name) {
    const Finished report = run_pkprof({"report", file(), "--view", name, "--json"});
    EXPECT_EQ(report.status, 0) << report.err;
    return json::parse(report.out);
  }
  // Bytes or ns of the programs of that name, in one way.
  static double used(const json& resource, const char* comm, const char* way, const char* value) {
    double sum = 0;
    for (const json& row : resource["rows"])
      if (row["who"].is_object() && row["who"]["comm"] == comm && row.contains("ways") &&
          row["ways"].contains(way))
        sum += row["ways"][way][value].get<double>();
    return sum;
  }
  [[nodiscard]] std::string file() const { return dir_.file("all.pb.gz"); }

  TempDir dir_;
};

TEST_F(ResourcesTest, AllOfACommand) {
  auto disk = testnet::Disk::create({.direct = true});
  if (!disk) GTEST_SKIP() << disk.error().message;
  const std::string script =
      "dd if=/dev/zero of=$0 bs=1M count=16 status=none; sync -f $0; "
      "dd if=/dev/zero of=/dev/null bs=32M count=1 status=none; "
      "$1 mutex >/dev/null; $2 recv --port 9601 --seconds 2 >/dev/null & "
      "sleep 0.5; $2 send --to 127.0.0.1 --port 9601 --count 2000 --size 1000 >/dev/null; wait";
  const Finished done = run_pkprof({"record", "-q", "--resource", "all", "--budget", "100", "-o",
                                    file(), "--", "bash", "-c", script, disk->path("file"),
                                    testnet::sibling("pk_wait"), testnet::sibling("pk_udp")});
  ASSERT_EQ(done.status, 0) << done.err;
  read_report(file());  // the ledger sums
  const json resources = view("usage")["resources"];
  constexpr double mega = 1 << 20;
  EXPECT_GE(used(resources["disk"], "dd", "write", "bytes"), 15 * mega);
  // Once on the loop device, and once on the disk that its file is on, if that is one.
  EXPECT_LE(used(resources["disk"], "dd", "write", "bytes"), 36 * mega);
  EXPECT_GE(used(resources["memory"], "dd", "anonymous", "bytes"), 28 * mega);
  EXPECT_LE(used(resources["memory"], "dd", "anonymous", "bytes"), 40 * mega)
      << resources["memory"].dump(1);
  constexpr double datagrams = 2000 * 1042.0;
  for (const char* way : {"sent", "received"})
    EXPECT_NEAR(used(resources["net"], "pk_udp", way, "bytes"), datagrams, 0.2 * datagrams) << way;
  if (capability_works("waits: the waiting thread's stack"))
    EXPECT_GE(used(resources["lock"], "pk_wait", "futex", "ns"), 0.1e9);
  double waited = 0;
  const json waits = view("waits")["waits"];
  for (const json& row : waits)
    if (row["who"]["comm"] == "pk_wait") waited += row["wait_ns"].get<double>();
  EXPECT_GE(waited, 0.1e9);
}

// Samples come in the middle of what hooks do: none of the two costs the other its stack.
TEST_F(ResourcesTest, SamplesAndHooksBothKnowWhatIsMapped) {
  const std::string times = in_guest() ? "30" : "400";
  const std::string many =
      "for i in $(seq " + times + "); do ls / | sed s/a/b/ | sort; done >/dev/null";
  const Finished done =
      run_pkprof({"record", "-q", "--resource", "all", "-F", "3989", "--budget", "100", "-o",
                  file(), "--", "bash", "-c", many + " & " + many + "; wait"});
  ASSERT_EQ(done.status, 0) << done.err;
  const Profile profile = must(read_profile(file()));
  EXPECT_GT(profile.meta.samples_taken, in_guest() ? 300U : 1000U) << "or few met a hook";
  EXPECT_EQ(profile.meta.counters.at("mappings of processes not told"), 0U);
}

TEST_F(ResourcesTest, WithoutTheOptionThereAreNone) {
  const Finished done = run_pkprof({"record", "-q", "-o", file(), "--", "dd", "if=/dev/zero",
                                    "of=" + dir_.file("x"), "bs=1M", "count=4", "status=none"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(view("usage")["resources"].empty());
  const Finished asked = run_pkprof({"report", file(), "--resource", "disk"});
  EXPECT_EQ(asked.status, 125);
  EXPECT_NE(asked.err.find("record --resource disk"), std::string::npos) << asked.err;
}

TEST_F(ResourcesTest, NeedHooks) {
  const Finished done = run_pkprof(
      {"record", "-q", "--no-attribution", "--resource", "disk", "-o", file(), "--", "true"});
  EXPECT_EQ(done.status, 2);
  EXPECT_NE(done.err.find("--no-attribution"), std::string::npos) << done.err;
}

// What is shown at the end of a command's run, all on one screen for each.
TEST_F(ResourcesTest, RunShowsThem) {
  const Finished done =
      run_pkprof({"run", "-q", "--resource", "memory,wait", "--", "dd", "if=/dev/zero",
                  "of=/dev/null", "bs=32M", "count=1", "status=none"});
  EXPECT_EQ(done.status, 0) << done.err;
  for (const char* part : {"For whom was the kernel working?", "What did threads wait for",
                           "For whom was memory taken?"})
    EXPECT_NE(done.out.find(part), std::string::npos) << done.out;
}

}  // namespace
}  // namespace pkprof::live
