// SPDX-License-Identifier: Apache-2.0
// A recording for DeBox alone: its kernel side tells threads what is done for them elsewhere, by
// samples and by the exact time of interrupts. What it counts besides is thrown away.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "cost/budget_keeper.h"
#include "kernel/kernel_side.h"
#include "probe/facts.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class AsyncFeed {
 public:
  static Result<std::unique_ptr<AsyncFeed>> start(const KernelFacts& facts,
                                                  const KernelSymbols* symbols,
                                                  const DeboxMemory& debox, double budget);
  ~AsyncFeed();
  AsyncFeed(const AsyncFeed&) = delete;
  AsyncFeed& operator=(const AsyncFeed&) = delete;

  // Does what is due. Returns when there will be more to do, CLOCK_MONOTONIC.
  uint64_t turn();
  [[nodiscard]] uint64_t cost_ns() const;  // in the kernel, so far
  // For what part of the time work elsewhere was watched, 0 to 1.
  [[nodiscard]] double watched() const;

 private:
  AsyncFeed(KernelSide kernel, HookOverhead overhead, double budget);

  KernelSide kernel_;
  BudgetKeeper budget_;
  uint64_t started_ = 0;
  uint64_t next_take_ = 0;
  uint64_t next_ask_ = 0;
};

}  // namespace pkprof
