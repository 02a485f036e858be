// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace pkprof {

// A stack as the kernel side hands it over: leaf first, by its number. For its frames in files see
// PK_FRAME_IN_FILE.
using RawStack = std::pair<uint64_t, std::vector<uint64_t>>;

}  // namespace pkprof
