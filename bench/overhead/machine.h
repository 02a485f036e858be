// SPDX-License-Identifier: Apache-2.0
// What the figures are of: the machine, its kernel, the tools.
#pragma once

#include "log.h"

namespace pkprof::overhead {

// Date, kernel, CPUs, memory; the rest is left as it is.
void describe_machine(RunInfo& info);

// The first line of what a program says of its version; "" if it says nothing.
[[nodiscard]] std::string version_of(const std::string& program, const std::string& flag);

}  // namespace pkprof::overhead
