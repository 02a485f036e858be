// SPDX-License-Identifier: Apache-2.0
// The functions that the sampler knows by address (bpf/stack/place.bpf.h), looked up in this
// kernel.
#pragma once

#include <string>
#include <vector>

#include "pkprof/user_abi.h"
#include "symbol/symbolizer.h"

namespace pkprof {

struct KnownFunctions {
  std::vector<pk_function> entries;  // sorted by start
  uint64_t timers[PK_TIMERS] = {};   // start of each socket timer's function, 0 when not found
  uint64_t known[PK_KNOWNS] = {};    // the same by enum pk_known
  std::vector<std::string> missing;  // kinds of places that no symbol was found for
};

[[nodiscard]] KnownFunctions find_functions(const KernelSymbols& symbols);

}  // namespace pkprof
