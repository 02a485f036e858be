// SPDX-License-Identifier: Apache-2.0
// CPUs that do not halt.
//
// A CPU that halts when it is idle has to be woken: on a virtual machine by way of its host, which
// takes longer than all that a request over loopback does, differs by the half from second to
// second, and takes less where timer interrupts come often. What is measured then is that, not what
// a profiler costs.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace pkprof::overhead {

// While one of these lives, idle CPUs wait awake: the kernel's request for a wake-up latency of 0,
// as tuned's network-latency profile makes it. An error where the kernel takes no such requests.
class Awake {
 public:
  [[nodiscard]] static Result<Awake> hold();

 private:
  explicit Awake(Fd request) : request_(std::move(request)) {}
  Fd request_;  // which ends when this is closed
};

}  // namespace pkprof::overhead
