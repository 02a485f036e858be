// SPDX-License-Identifier: Apache-2.0
// An agent's configuration: what it says, and what is said of one that is wrong.
#include "agent/config.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

std::string error_of(const std::string& text) {
  const auto config = parse_agent_config(text, "agent.toml");
  return config ? "" : config.error().message;
}

constexpr const char* smallest = "[metrics]\n";

TEST(AgentConfigFile, SaysAll) {
  const auto config = parse_agent_config(R"(
interval = 30
budget = 2.5
frequency = 99
clients = true
resources = ["wait", "disk"]
host = "web1"
spool = "/var/spool/pkprof"
spool_size = "64M"
[labels]
region = "eu-1"
[metrics]
address = "0.0.0.0"
port = 9000
by = "unit"
series = 20
[[sink]]
type = "files"
name = "local"
directory = "/var/lib/pkprof/profiles"
keep = "7d"
size = "1G"
)",
                                         "agent.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->interval, 30);
  EXPECT_DOUBLE_EQ(config->budget, 0.025);
  EXPECT_EQ(config->frequency_hz, 99);
  EXPECT_TRUE(config->clients);
  EXPECT_EQ(config->resources, (std::vector<std::string>{"wait", "disk"}));
  EXPECT_EQ(config->host, "web1");
  EXPECT_EQ(config->labels.at("region"), "eu-1");
  EXPECT_EQ(config->spool, "/var/spool/pkprof");
  EXPECT_EQ(config->spool_bytes, uint64_t{64} << 20);
  EXPECT_EQ(config->metrics.address, "0.0.0.0");
  EXPECT_EQ(config->metrics.port, 9000);
  EXPECT_EQ(config->metrics.by, "unit");
  EXPECT_EQ(config->metrics.series, 20);
  ASSERT_EQ(config->sinks.size(), 1);
  EXPECT_EQ(config->sinks[0].name, "local");
  EXPECT_EQ(config->sinks[0].directory, "/var/lib/pkprof/profiles");
  EXPECT_EQ(config->sinks[0].keep.age_ns, 7 * 86400 * uint64_t{1'000'000'000});
  EXPECT_EQ(config->sinks[0].keep.bytes, uint64_t{1} << 30);
}

TEST(AgentConfigFile, HasDefaults) {
  const auto config = parse_agent_config(smallest, "agent.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->interval, 10);
  EXPECT_DOUBLE_EQ(config->budget, 0.01);
  EXPECT_EQ(config->metrics.address, "127.0.0.1");
  EXPECT_TRUE(config->sinks.empty());
}

TEST(AgentConfigFile, IsToldWhatIsWrongAndWhere) {
  const std::string metrics = smallest;
  const std::pair<std::string, std::string> wrong[] = {
      {"interval = 10\nintervall = 5\n", "agent.toml:2: \"intervall\" is not known here"},
      {"interval = \"10\"\n", "agent.toml:1: interval is to be a number from 1 to 3600"},
      {"interval = 0\n", "agent.toml:1: interval is to be a number from 1 to 3600"},
      {"budget = nan\n", "agent.toml:1: budget is to be a number from 0.01 to 100"},
      {"clients = 1\n", "agent.toml:1: clients is to be true or false"},
      {"resources = [\"gpu\"]\n",
       "agent.toml:1: resources has what is none of cpu, wait, lock, disk, net, memory, all"},
      {"resources = \"disk\"\n", "agent.toml:1: resources is to be a list of strings"},
      {"spool_size = \"64 MB\"\n",
       "agent.toml:1: spool_size: 64 MB is no size; write 500, 64K, 100M, 2G or 1T"},
      {"spool_size = \"99999999999999T\"\n",
       "agent.toml:1: spool_size: 99999999999999T is no size; write 500, 64K, 100M, 2G or 1T"},
      {"spool = \"here\"\n", "agent.toml:1: spool is to begin with /"},
      {"labels = 1\n", "agent.toml:1: [labels] is to be a table"},
      {"[labels]\n\"a b\" = \"c\"\n",
       "agent.toml:2: labels are strings, by names of letters, digits, - and _"},
      {"[metrics]\nport = 65536\n", "agent.toml:2: port is to be a whole number from 0 to 65535"},
      {"[metrics]\nby = \"pid\"\n",
       "agent.toml:2: by: \"pid\" is none of container, unit, exe, comm, cgroup"},
      {"sink = 1\n", "agent.toml:1: sink is to be written [[sink]]"},
      {"[[sink]]\ntype = \"kafka\"\n", "agent.toml:2: type: \"kafka\" is none of files, store"},
      {"[[sink]]\n", "agent.toml:1: a sink needs a type"},
      {"[[sink]]\ntype = \"store\"\n", "agent.toml:1: a store needs a url: \"sqlite:/PATH\""},
      {"[[sink]]\ntype = \"files\"\nname = \"../x\"\ndirectory = \"/x\"\n",
       "agent.toml:1: a sink's name is of letters, digits, - and _"},
      {"[[sink]]\ntype = \"files\"\ndirectory = \"x\"\n",
       "agent.toml:1: directory is to begin with /"},
      {"[[sink]]\ntype = \"files\"\ndirectory = \"/x\"\n[[sink]]\ntype = \"files\"\ndirectory = "
       "\"/y\"\n",
       "agent.toml: two sinks have the name files"},
      {"", "agent.toml: there is neither a [[sink]] nor [metrics]: nobody would hear of it"},
  };
  for (const auto& [text, error] : wrong) EXPECT_EQ(error_of(text), error) << text;
  // The library's own words, with our place.
  EXPECT_TRUE(error_of("interval = = 1\n").starts_with("agent.toml:1: "));
}

}  // namespace
}  // namespace pkprof
