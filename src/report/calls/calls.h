// SPDX-License-Identifier: Apache-2.0
// Calls that were counted: of which function, from where, for whom. They are no estimate, and no
// time is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/functions.h"
#include "report/groups.h"
#include "report/options.h"

namespace pkprof {

struct CallsRow {
  LabelId label = 0;   // of whom they are for; of a group, any
  GroupId served = 0;  // of a process
  FunctionId function = 0;
  FunctionId caller = UINT32_MAX;  // that: not known
  uint64_t calls = 0;
};

struct CallCounts {
  FunctionTable table;
  std::vector<Group> groups;
  std::vector<CallsRow> rows;  // largest first
  uint64_t calls = 0;          // of all rows
  uint64_t left_out = 0;       // for processes that were not selected
  size_t functions = 0;        // that were called at all

  // "nginx[812]", "KERNEL", "UNCLAIMED:dropped". Not cleaned.
  [[nodiscard]] std::string served(const Profile& profile, By by, const CallsRow& row) const;
};

[[nodiscard]] CallCounts count_calls(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
