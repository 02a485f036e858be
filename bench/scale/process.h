// SPDX-License-Identifier: Apache-2.0
// Other processes: ours to measure, and ours to measure in.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof::scale {

using Json = nlohmann::json;

// What the function returns, from a process of its own: its memory is its own, and is gone with it.
[[nodiscard]] Result<Json> in_child(const std::function<Result<Json>()>& what);

struct Run {
  int status = 0;
  double seconds = 0;
  double cpu_ms = 0;
  double rss_mib = 0;  // its peak
  int64_t started_unix_ns = 0;
};
// A program to its end, with its output (if a file is named) in a file.
[[nodiscard]] Result<Run> run_program(const std::vector<std::string>& words,
                                      const std::string& output = "");

[[nodiscard]] double rss_mib();  // of this process, now
[[nodiscard]] double peak_rss_mib();
[[nodiscard]] double now_ms();

}  // namespace pkprof::scale
