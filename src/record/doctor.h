// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/capability.h"

namespace pkprof {

struct Diagnosis {
  bool can_record = false;
  Capabilities capabilities;
};

// Tries everything a recording does, for a moment, and says what works and what does not.
[[nodiscard]] Diagnosis diagnose();

}  // namespace pkprof
