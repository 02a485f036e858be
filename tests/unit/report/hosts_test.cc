// SPDX-License-Identifier: Apache-2.0
// A profile of several machines: processes with one id on two of them are two processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/pprof/pprof.h"
#include "report/ledger/ledger_text.h"
#include "report/listing/flat_text.h"
#include "report/report_json.h"

namespace pkprof {
namespace {

Profile two_hosts() {
  Profile profile;
  profile.meta = {.kernel = "6.1",
                  .host = "web1, web2",
                  .cpus = 3,
                  .duration_ns = 1'000'000'000,
                  .all_cpu_ns = 2'500'000'000,
                  .frequency_hz = 997};
  uint64_t ns = 500'000'000;
  for (const char* host : {"web1", "web2"}) {
    const LabelId nginx = profile.label(
        {.kind = LabelKind::process, .pid = 812, .start_ns = 5, .comm = "nginx", .host = host});
    const FrameId frames[] = {
        profile.frame({.address = 0x1000, .function = profile.string("serve")})};
    profile.add({.ran_on = nginx,
                 .served = nginx,
                 .source = profile.string("user"),
                 .stack = profile.stack(frames)},
                {.count = 1, .ns = ns});
    ns *= 4;
  }
  return profile;
}

TEST(Hosts, AreInFrontOfNames) {
  const Profile profile = two_hosts();
  const std::string ledger = ledger_text(profile, {});
  EXPECT_NE(ledger.find("web1/nginx"), std::string::npos) << ledger;
  EXPECT_NE(ledger.find("web2/nginx"), std::string::npos) << ledger;
  const std::string flat = flat_text(profile, {.by = By::pid, .apart = true});
  EXPECT_NE(flat.find("web2/812u:serve"), std::string::npos) << flat;
  EXPECT_EQ(profile.labels()[1].name(), "web1/nginx:812");
}

TEST(Hosts, AreRows) {
  const auto report = nlohmann::json::parse(report_json(two_hosts(), {.by = By::host}));
  EXPECT_EQ(report["cpu_ns"], 2'500'000'000U) << "of all machines";
  ASSERT_EQ(report["groups"].size(), 2U);
  EXPECT_EQ(report["groups"][0]["name"], "web2");
  EXPECT_EQ(report["groups"][0]["user_ns"], 2'000'000'000U);
  const auto by_pid = nlohmann::json::parse(report_json(two_hosts(), {}));
  EXPECT_EQ(by_pid["processes"][0]["host"], "web2");
}

TEST(Hosts, OfOneMachineIsItself) {
  Profile profile;
  profile.meta.host = "web1";
  const LabelId sh = profile.label({.kind = LabelKind::process, .pid = 7, .comm = "sh"});
  Groups groups(profile, By::host, {});
  EXPECT_EQ(group_title(profile, By::host, groups.all()[groups.of(sh, 0)]), "web1");
  EXPECT_EQ(profile.labels()[sh].name(), "sh:7");
}

TEST(Hosts, AreInTheFile) {
  const std::string bytes = encode_pprof(two_hosts()).value();
  const auto back = decode_pprof(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->labels(), two_hosts().labels());
  EXPECT_EQ(back->cpu_ns(), 2'500'000'000U);
}

}  // namespace
}  // namespace pkprof
