// SPDX-License-Identifier: Apache-2.0
// What DeBox's kernel side is told of the kernel before it is loaded.
#pragma once

#include "pkprof/debox_user_abi.h"
#include "probe/facts.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// Without symbols (null), what is waited for is not known everywhere.
void tell_debox(db_config& config, const KernelFacts& facts, const KernelSymbols* symbols);

}  // namespace pkprof
