// SPDX-License-Identifier: Apache-2.0
// The rest of a stack that the kernel side handed over, by the same rules as there
// (bpf/user/unwind.bpf.c).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "pkprof/user_abi.h"

namespace pkprof {

struct StackTop {
  uint64_t ip = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
  bool exact = false;      // ip was interrupted, and not returned to
  std::string_view bytes;  // from sp on
};

// How the code there is left; none: it is no code.
using RuleAt = std::function<std::optional<uint32_t>(uint64_t address)>;

// Appends the frames beyond the one at hand, as they are in a pk_stack but for their files, until
// there are so many. Returns how it ended.
pk_stack_end walk_on(StackTop top, const RuleAt& rule_at, size_t most_frames,
                     std::vector<uint64_t>& frames);

}  // namespace pkprof
