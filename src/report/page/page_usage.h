// SPDX-License-Identifier: Apache-2.0
// What the page knows of locks, disks, networks and memory. Private to src/report/page.
#pragma once

#include "model/profile.h"
#include "report/json_header.h"

namespace pkprof {

// By resource: rows by whatever they can be by, and where it was used. Labels and functions have
// the numbers that they have in `profile`, which has all of its resources.
[[nodiscard]] Json resources_to_json(const Profile& profile);

}  // namespace pkprof
