// SPDX-License-Identifier: Apache-2.0
// The page of one process, thread or group: what it was served by and why, who worked for it and
// for whom it worked, and its hot stacks.
#pragma once

#include <span>
#include <vector>

#include "top/screen.h"
#include "top/table.h"

namespace pkprof::top {

// As many lines as it takes. `resources`: those that are shown besides CPU time.
[[nodiscard]] std::vector<Line> detail_lines(const Profile& profile, const Table& table,
                                             const TableRow& row, By by, size_t width, bool unicode,
                                             std::span<const Resource> resources = {});

}  // namespace pkprof::top
