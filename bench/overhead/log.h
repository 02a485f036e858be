// SPDX-License-Identifier: Apache-2.0
// What a run of the overhead suite leaves behind: lines of JSON, one for each slice, in the order
// they were measured. Tables and the page are made from that alone, on any machine, at any time.
//
//   {"run":{…}}                                            a run begins: machine, tools, what is
//   what
//   {"skipped":"perf","why":"…"}                           a variant or workload that is not in it
//   {"workload":"udp","hz":997,"variant":"perf","round":3,"turn":1,"value":411230.5}   per
//   second
//   {"failed":"udp","hz":997,"variant":"perf","round":4,"turn":7,"why":"…"}
//
// Slices with the same workload, frequency and round had one load under them, that went on from the
// first to the last; "plain" ones had no profiler. Within a round each profiler has its turn
// several times; where there is no "turn", once. The order matters: a slice is compared with the
// plain ones nearest before and after it. Runs may follow each other in one file; rounds of
// different runs are different rounds. Keys may be added; readers pass over lines and keys that
// they do not know.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof::overhead {

inline constexpr const char* kPlain = "plain";

struct Slice {
  std::string workload;
  int hz = 0;
  std::string variant;
  int round = 0;
  int turn = 0;
  double value = 0;  // operations (or bytes) a second
};

struct Failure {
  Slice slice;  // without a value
  std::string why;
};

struct Skip {
  std::string name;
  std::string why;
};

struct WorkloadInfo {
  std::string name;
  std::string title;
  std::string unit;
  std::string what;
};

struct VariantInfo {
  std::string name;
  std::string command;
};

// What a run says of itself.
struct RunInfo {
  std::string date;
  std::string kernel;
  std::string cpu;
  int cpus = 0;
  int memory_mb = 0;
  double seconds = 0;  // a slice's length
  double lead = 0;     // of a load before its first slice
  double settle = 0;   // of a profiler before its first slice
  int turns = 0;       // of each profiler in a round
  int rounds = 0;      // asked for; there may be fewer
  bool awake = false;  // CPUs did not halt (awake.h)
  std::vector<std::string> tools;
  std::vector<WorkloadInfo> workloads;
  std::vector<VariantInfo> variants;
};

struct Run {
  RunInfo info;
  std::vector<Skip> skipped;
  std::vector<Slice> slices;
  std::vector<Failure> failures;
};

[[nodiscard]] std::string to_line(const RunInfo& info);
[[nodiscard]] std::string to_line(const Skip& skip);
[[nodiscard]] std::string to_line(const Slice& slice);
[[nodiscard]] std::string to_line(const Failure& failure);

// The runs in such a text; an error names the line.
[[nodiscard]] Result<std::vector<Run>> parse_log(const std::string& text);

}  // namespace pkprof::overhead
