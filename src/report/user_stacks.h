// SPDX-License-Identifier: Apache-2.0
// How many stacks of user code reach the thread's beginning.
#pragma once

#include <string>

#include "model/profile.h"

namespace pkprof {

// "user stacks: 99.7% whole; cut: 0.2% no table yet, 0.1% too deep"; "" where it is not known. Of
// the reasons as many as there is room for, the commonest first.
[[nodiscard]] std::string user_stacks_text(const Meta& meta, size_t width);

}  // namespace pkprof
