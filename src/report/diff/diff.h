// SPDX-License-Identifier: Apache-2.0
// Two profiles compared: what got dearer, by process (or group), by source, and by function.
//
// Recordings are of different lengths, so all times are shares of one CPU: nanoseconds of CPU time
// a second. Processes of two runs have different ids: they are the same where their names are, or
// whatever else `by` says. Times that samples stand for are known as well as there are samples:
// each value has the variance of its change.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/functions.h"
#include "report/groups.h"

namespace pkprof {

struct DiffValue {
  double a = 0;  // share of one CPU: 0.5 is half of its time
  double b = 0;
  double variance = 0;  // of b - a, by chance

  [[nodiscard]] double change() const { return b - a; }
  // The change is within so much of what it would be over and over again, in 95 of 100 cases.
  [[nodiscard]] double margin() const { return 1.96 * std::sqrt(variance); }
  [[nodiscard]] bool is_sure() const { return std::abs(change()) > margin(); }
};

// One process or group, or KERNEL, IDLE, OTHER, UNCLAIMED with its reason.
struct DiffRow {
  std::string name;  // not cleaned
  GroupKind kind = GroupKind::member;
  DiffValue costs;
  DiffValue user, own, async;  // parts of costs; of special rows, nothing
  DiffValue stolen;
};

struct DiffSource {
  std::string name;  // whom it was for
  std::string source;
  DiffValue time;
};

struct DiffFunction {
  Function function;
  DiffValue self;
};

struct Diff {
  std::vector<DiffRow> rows;            // greatest change first
  std::vector<DiffSource> sources;      // the same; without user code, and without idle time
  std::vector<DiffFunction> functions;  // the same
};

// With `pids`, only these, and the functions that worked for them; the rest is OTHER.
[[nodiscard]] Diff diff_profiles(const Profile& a, const Profile& b, By by,
                                 std::span<const uint32_t> pids = {});

}  // namespace pkprof
