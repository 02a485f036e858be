// SPDX-License-Identifier: Apache-2.0
// Records all the time, and hands what was recorded to sinks, an interval at a time.
#pragma once

#include <functional>
#include <string>

#include "agent/config.h"
#include "base/result.h"

namespace pkprof {

struct AgentOptions {
  std::string config_path;  // read again at SIGHUP
  AgentConfig config;
  bool once = false;  // one interval; it ends when all sinks have taken it, or one has failed
  // A sentence for the log.
  std::function<void(const std::string& sentence)> tell;
};

// Until SIGINT or SIGTERM. An error where recording is not possible, or not any more; or, once,
// where a sink did not take the cut.
[[nodiscard]] Result<> run_agent(AgentOptions options);

}  // namespace pkprof
