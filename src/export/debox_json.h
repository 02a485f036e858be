// SPDX-License-Identifier: Apache-2.0
// Records of system calls as JSON lines.
#pragma once

#include <map>
#include <string>

#include "model/system_calls.h"

namespace pkprof {

// One line, with a newline. `call` is the call's name; `places` names places in the kernel by the
// numbers that the record has, and may lack some.
[[nodiscard]] std::string debox_json(const SlowCall& slow, const std::string& call,
                                     const std::map<uint32_t, std::string>& places);

}  // namespace pkprof
