// SPDX-License-Identifier: Apache-2.0
// The call tree, from the process that was served down to where the time went: user code, the
// system call it made and the work the kernel did for it later, in one tree. Where the stack
// changes context there is a pseudo frame («softirq:NET_RX»). A chain of calls without a branch
// is printed without indentation; branches below the threshold are summed up.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// With options.pids, only what was served to them. options.by: one tree for each thread or group
// instead. options.limit is the number of trees.
[[nodiscard]] std::string tree_text(const Profile& profile, const ReportOptions& options = {});

}  // namespace pkprof
