// SPDX-License-Identifier: Apache-2.0
// What a report must say on its face: the capabilities that were missing and everything that was
// lost, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "model/profile.h"

namespace pkprof {

// Meta::degraded, then "NAME: N" for each counter that is not zero. Not cleaned.
[[nodiscard]] std::vector<std::string> degraded_sentences(const Meta& meta);

}  // namespace pkprof
