// SPDX-License-Identifier: Apache-2.0
// What the page knows of waiting. Private to src/report/page.
#pragma once

#include "model/profile.h"
#include "report/json_header.h"

namespace pkprof {

// Rows by whatever they can be by, and where threads waited. Labels and functions have the numbers
// that they have in `profile`, which has all of its resources.
[[nodiscard]] Json waits_to_json(const Profile& profile);

}  // namespace pkprof
