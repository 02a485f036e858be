// SPDX-License-Identifier: Apache-2.0
// What the page knows of locks, disks, networks and memory: what `report --view usage` says, and
// where in the code it was used. How it looks is web/tests.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/merge.h"
#include "page_fixture.h"
#include "report/page/page.h"
#include "report/usage/usage.h"
#include "report_fixture.h"
#include "usage_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;
using test::page_data_of;
using test::UsageMachine;

json used(const Used& of, Resource resource) {
  json to = {of.amount, of.count};
  if (resource == Resource::disk) to.push_back(of.time_ns);
  return to;
}

using Ways = std::map<std::string, json>;

Ways ways(const json& of, const json& words) {
  Ways to;
  for (const json& way : of) to[words[way[0].get<size_t>()]] = way[1];
  return to;
}

Ways ways(const std::map<std::string, Used>& of, Resource resource) {
  Ways to;
  for (const auto& [way, amount] : of) to[way] = used(amount, resource);
  return to;
}

void expect_like(const json& row, const User& wanted, const json& words, Resource resource) {
  EXPECT_EQ(row["all"], used(wanted.all, resource));
  EXPECT_EQ(ways(row["ways"], words), ways(wanted.ways, resource));
  ASSERT_EQ(row.contains("devices"), !wanted.devices.empty());
  if (wanted.devices.empty()) return;
  ASSERT_EQ(row["devices"].size(), wanted.devices.size());
  for (const json& device : row["devices"]) {
    const std::string name = words[device[0].get<size_t>()];
    ASSERT_TRUE(wanted.devices.contains(name)) << name;
    EXPECT_EQ(ways(device[1], words), ways(wanted.devices.at(name), resource));
  }
}

TEST(PageUsage, HasTheReportsRows) {
  const UsageMachine machine;
  const json resources = page_data_of(machine.profile)["resources"];
  ASSERT_EQ(resources.size(), 4U);
  for (const Resource resource : used_resources(machine.profile)) {
    const json& of = resources[std::string(to_string(resource))];
    EXPECT_EQ(of["bytes"], is_in_bytes(resource));
    EXPECT_FALSE(of["by"].contains("client"));
    for (const By by : {By::pid, By::comm, By::cgroup}) {
      const Usage wanted = usage_of(machine.profile, resource, by, {});
      const json& table = of["by"][std::string(to_string(by))];
      ASSERT_EQ(table["rows"].size(), wanted.rows.size());
      for (size_t i = 0; i < wanted.rows.size(); ++i)
        expect_like(table["rows"][i], wanted.rows[i], of["words"], resource);
      expect_like(table["total"], wanted.total, of["words"], resource);
    }
  }
}

TEST(PageUsage, SaysWhoHeldLocksAndWhoIsAtTheOtherEnd) {
  const json resources = page_data_of(UsageMachine().profile)["resources"];
  const auto others = [&](const char* resource, size_t row) {
    const json& table = resources[resource]["by"]["pid"];
    std::map<std::string, uint64_t> to;
    for (const json& other : table["rows"][row]["others"])
      to[table["groups"][other[0].get<size_t>()]["name"]] = other[1];
    return to;
  };
  using Others = std::map<std::string, uint64_t>;
  EXPECT_EQ(others("lock", 0),
            Others({{"postgres[812]", 1'900'000'000}, {"unclaimed: dropped", 3'000'000}}));
  EXPECT_EQ(others("net", 0), Others({{"192.0.2.7", 97 << 20}}));
}

// The names in a table, and of these the labels that stacks are found by.
TEST(PageUsage, NamesWhatIsNobodys) {
  const UsageMachine machine;
  const json data = page_data_of(machine.profile);
  const json& table = data["resources"]["net"]["by"]["pid"];
  const auto group = [&](size_t row) {
    return table["groups"][table["rows"][row]["who"].get<size_t>()];
  };
  EXPECT_EQ(group(1)["name"], "unclaimed: dropped");
  EXPECT_EQ(group(1)["labels"], json({machine.nobody}));
  EXPECT_EQ(group(2)["name"], "unclaimed: forgotten");
  EXPECT_EQ(group(2)["labels"], json({machine.forgotten}));
}

// A row names the largest, and its groups are no more than are named.
TEST(PageUsage, NamesNotAllOfManyPeers) {
  UsageMachine machine;
  Profile& profile = machine.profile;
  for (uint32_t i = 0; i < 1000; ++i) {
    const std::string address = "198.51.100." + std::to_string(i);
    profile.add(
        {.ran_on = profile.label(
             {.kind = LabelKind::remote, .without_pid = true, .comm = address, .reason = address}),
         .served = machine.database,
         .source = profile.string("net:sent"),
         .resource = Resource::net},
        {.count = 1, .ns = 1000 + i});
  }
  const json table = page_data_of(profile)["resources"]["net"]["by"]["pid"];
  EXPECT_EQ(table["rows"][0]["others"].size(), 50U);
  EXPECT_EQ(table["rows"][0]["others"][1][1], 1999U);
  EXPECT_EQ(table["groups"].size(), 3U + 50U);
}

TEST(PageUsage, HasTheStacks) {
  const json data = page_data_of(UsageMachine().profile);
  const auto path = [&](const json& of, size_t node) {
    std::string text;
    while (node) {
      const size_t function = of["nodes"]["function"][node];
      text.insert(0, data["stacks"]["functions"]["name"][function].get<std::string>() + ";");
      node -= of["nodes"]["up"][node].get<size_t>();
    }
    return text;
  };
  std::map<std::string, uint64_t> had;
  for (const auto& [resource, of] : data["resources"].items()) {
    const json& samples = of["samples"];
    for (size_t i = 0; i < samples["ns"].size(); ++i)
      had[resource + " " +
          data["labels"][samples["who"][i].get<size_t>()]["name"].get<std::string>() + " " +
          path(of, samples["node"][i]) +
          std::string(to_string(static_cast<Basis>(samples["basis"][i].get<int>())))] +=
          samples["ns"][i].get<uint64_t>();
  }
  EXPECT_EQ(had["disk postgres:812 main;syscall:write;ksys_write;disk:write;vda;submitter"],
            300U << 20);
  EXPECT_EQ(had["disk postgres:812 main;syscall:write;ksys_write;disk:write;vdb;voted"], 20U << 20);
  EXPECT_EQ(had["lock worker:77 main;take_lock;lock:futex;schedule;pool_lock;own"], 1'500'000'000U);
  EXPECT_EQ(had["net UNCLAIMED:dropped main;syscall:write;ksys_write;net:dropped;eth0;own"], 1500U);
}

TEST(PageUsage, IsNoCpuTime) {
  const Profile profile = UsageMachine().profile;
  json with = page_data_of(profile);
  json without = page_data_of(of_resource(profile, Resource::cpu));
  EXPECT_FALSE(without.contains("resources"));
  with.erase("resources");
  EXPECT_EQ(with, without);
  EXPECT_FALSE(page_data_of(test::small_machine()).contains("resources"));
}

TEST(PageUsage, AloneIsWhatIsAskedFor) {
  const json data = page_data_of(of_resource(UsageMachine().profile, Resource::disk));
  EXPECT_EQ(data["resource"], "disk");
  ASSERT_EQ(data["resources"].size(), 1U);
  EXPECT_EQ(data["resources"]["disk"]["by"]["pid"]["rows"].size(), 2U);
}

TEST(PageUsage, IsNotInAComparison) {
  const Profile profile = UsageMachine().profile;
  for (const Resource resource : {Resource::cpu, Resource::disk}) {
    const Profile one = of_resource(profile, resource);
    const auto html = diff_page_html(one, "a", one, "b", By::pid);
    ASSERT_TRUE(html);
    for (const char* which : {"profile", "before"})
      EXPECT_FALSE(test::unpacked(*html)[which].contains("resources"));
  }
}

TEST(PageUsage, HasNoNameAsMarkup) {
  const auto html = page_html(UsageMachine().profile, "x");
  ASSERT_TRUE(html);
  EXPECT_EQ(html->find("<img"), std::string::npos);
  EXPECT_EQ(html->find("<b>eth1"), std::string::npos);
  const std::string data = test::unpacked(*html).dump();
  EXPECT_EQ(data.find('\x1b'), std::string::npos);
  EXPECT_EQ(data.find("u001b"), std::string::npos);
}

}  // namespace
}  // namespace pkprof
