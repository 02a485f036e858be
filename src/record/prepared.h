// SPDX-License-Identifier: Apache-2.0
// What a recording has before it begins: its hooks are attached, its command waits to be executed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel/kernel_side.h"
#include "kernel/kernel_symbols.h"
#include "probe/facts.h"
#include "process/child.h"
#include "process/mappings.h"
#include "process/sideband.h"
#include "record/record_options.h"
#include "unwind/table_maker.h"
#include "unwind/unfinished_stacks.h"

namespace pkprof {

struct Prepared {
  std::optional<Child> child;  // of the options' command
  std::optional<KernelSymbols> symbols;
  KernelFacts facts;
  KernelSide kernel;
  HookOverhead overhead;
  std::optional<Sideband> sideband;
  Mappings mappings;
  // nullptr: user stacks are by frame pointers alone.
  std::unique_ptr<TableMaker> tables;
  std::unique_ptr<UnfinishedStacks> unfinished;
  std::vector<std::string> degraded;
};

// Names in the options' target become numbers.
[[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(RecordOptions& options);

}  // namespace pkprof
