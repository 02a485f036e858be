// SPDX-License-Identifier: Apache-2.0
// Meta of cuts together. Of one host time adds up, as merge() adds it; of several, CPU time does.
#pragma once

#include <span>

#include "model/profile.h"
#include "store/rows.h"

namespace pkprof::store {

// All but the lists: degraded, counters, user_stacks. `cuts` as in QueryRows, at least one.
[[nodiscard]] Meta meta_of(std::span<const CutRow> cuts);

// "a, b, c and 4 more": some of many names.
[[nodiscard]] std::string names_of(const std::vector<std::string>& names);

}  // namespace pkprof::store
