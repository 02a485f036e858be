// SPDX-License-Identifier: Apache-2.0
// The PID namespace in which pkprof runs, by whose numbers it knows processes.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace pkprof {

// 0: the machine's own. Fails where /proc has the numbers of another one: what it says of a number
// would be of a process that happens to have it there.
[[nodiscard]] Result<uint32_t> pid_namespace();

}  // namespace pkprof
