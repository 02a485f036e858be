// SPDX-License-Identifier: Apache-2.0
// What is shown of other resources with the ledger.
#include "report/usage/resources.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden.h"
#include "model/merge.h"
#include "report/report_json.h"
#include "report/usage/usage_text.h"
#include "report/waits/waits_text.h"
#include "waits_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;

Profile with_disks() {
  Profile profile = test::waits_machine();
  const LabelId reader = profile.label({.kind = LabelKind::process, .pid = 812, .start_ns = 812});
  profile.add({.ran_on = reader,
               .served = reader,
               .source = profile.string("disk:read"),
               .resource = Resource::disk},
              {.count = 3, .ns = 12288, .exact_ns = 500});
  profile.meta.degraded = {"disks: some requests are not seen"};
  return profile;
}

TEST(Resources, AreTablesEachAfterAnEmptyLine) {
  const std::string text = resources_text(with_disks(), {});
  EXPECT_TRUE(text.starts_with("\nWhat did threads wait for")) << text;
  EXPECT_NE(text.find("\n\nFor whom did the disks work?\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("Incomplete"), std::string::npos) << "the ledger says that";
  EXPECT_NE(waits_text(with_disks(), {}).find("Incomplete"), std::string::npos);
  test::expect_harmless(text, 80);
}

TEST(Resources, OfCpuTimeAloneThereIsNothing) {
  EXPECT_EQ(resources_text(of_resource(with_disks(), Resource::cpu), {}), "");
  EXPECT_EQ(resources_text(of_resource(with_disks(), Resource::wait), {}).find("disks"),
            std::string::npos);
}

TEST(Resources, ByClientTheyAreByProcess) {
  EXPECT_EQ(resources_text(with_disks(), {.by = By::client}), resources_text(with_disks(), {}));
}

// The ledger's part is that of CPU time, to the byte.
TEST(Resources, InJsonTheyAreAsInTheirViews) {
  const Profile recorded = with_disks();
  const Profile cpu = of_resource(recorded, Resource::cpu);
  json report = json::parse(report_json_with(recorded, cpu));
  EXPECT_EQ(report["waits"], json::parse(waits_json(recorded, {}))["waits"]);
  EXPECT_EQ(report["resources"], json::parse(usage_json(recorded, {}))["resources"]);
  EXPECT_EQ(report["resources"]["disk"]["total"]["bytes"], 12288);
  report.erase("waits");
  report.erase("resources");
  EXPECT_EQ(report, json::parse(report_json(cpu)));
  EXPECT_EQ(report_json_with(cpu, cpu), report_json(cpu));
}

}  // namespace
}  // namespace pkprof
