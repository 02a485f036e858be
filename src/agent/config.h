// SPDX-License-Identifier: Apache-2.0
// What an agent is to do: a file in TOML, agent.toml.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pkprof {

// What is kept of something that grows: 0 is no limit.
struct Keep {
  uint64_t age_ns = 0;
  uint64_t bytes = 0;
};

struct SinkConfig {
  std::string name;       // of its directory in the spool, and in the figures
  std::string type;       // "files", "store"
  std::string directory;  // of files
  std::string url;        // of a store
  Keep keep;
};

struct MetricsConfig {
  std::string address;  // "127.0.0.1"; "": nobody can ask
  uint16_t port = 9468;
  std::string by = "container";
  uint64_t series = 500;  // groups that have figures of their own; the rest is "other"
};

struct AgentConfig {
  double interval = 10;  // seconds, between two cuts
  double budget = 0.01;  // of any CPU's time
  uint64_t frequency_hz = 199;
  bool clients = false;
  std::vector<std::string> resources;  // besides CPU time
  std::string host;                    // "": the machine's name
  std::map<std::string, std::string> labels;
  std::string spool = "/var/lib/pkprof/spool";
  uint64_t spool_bytes = uint64_t{256} << 20;  // for each sink
  MetricsConfig metrics;
  std::vector<SinkConfig> sinks;
};

// What is wrong is told with its line: "agent.toml:12: …". What the file does not know is an error.
[[nodiscard]] Result<AgentConfig> parse_agent_config(std::string_view text,
                                                     const std::string& path);
[[nodiscard]] Result<AgentConfig> read_agent_config(const std::string& path);

}  // namespace pkprof
