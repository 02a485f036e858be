// SPDX-License-Identifier: Apache-2.0
// GNU gprof, run on files and its listings read: it says whether they are right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pkprof::test {

struct GprofRow {
  double percent = 0;
  double self_seconds = 0;
  double child_seconds = 0;       // of the call graph
  std::optional<uint64_t> calls;  // by others
  uint64_t recursive_calls = 0;   // of the call graph
  std::string name;               // without the numbers of its entry and its cycle
  bool in_cycle = false;
};

struct Gprof {
  int status = 0;
  std::string out;  // both listings, as they are
  std::string err;
  double seconds = 0;  // all that it found, as the call graph says
  std::vector<GprofRow> flat;
  std::vector<GprofRow> graph;  // the line of each entry that it is about, cycles too

  // Shares of the time, in percent, of all that has this name.
  [[nodiscard]] std::map<std::string, double> percent_of() const;
};

// `gprof -b` on a symbol file (or a program) and files of one of them.
[[nodiscard]] Gprof run_gprof(const std::string& symbols, const std::vector<std::string>& files);

}  // namespace pkprof::test
