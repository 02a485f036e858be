// SPDX-License-Identifier: Apache-2.0
// What the files of KernelSide share. No one else includes this.
#pragma once

#include "kernel/kernel_side.h"
#include "kernel/kernel_symbols.h"
#include "kernel/object/client_table.h"
#include "kernel/object/kernel_object.h"
#include "kernel/object/waits.h"

namespace pkprof {

struct LoadedKernel::Parts {
  explicit Parts(const KernelSideOptions& options) : object(options) {}

  KernelObject object;
  KernelHooks hooks{object};
  SamplingClocks clocks{object};
  CallCounting calls{object};
  SocketOwners owners{object};
  UnwindMaps unwind{object};
  ClientTable clients;
  Waits waits{object};
  KernelData data;
  KernelTables tables{object, clocks, calls};
};

}  // namespace pkprof
