// SPDX-License-Identifier: Apache-2.0
// By what means this kernel lets calls of its functions be counted, found out by trying.
//
// A program for each function (fentry) is the better: a call costs least, and a program keeps away
// nothing but calls of its own function that interrupt it. Attaching one takes ten milliseconds,
// though, and a function must be in the kernel's type information. One program for any number of
// functions (kprobe.multi) is attached at once; while it runs on a CPU, interrupts there go
// uncounted, and the kernel says how many.
#pragma once

#include <cstddef>
#include <string>

#include "probe/capability.h"
#include "probe/facts.h"

namespace pkprof {

struct CallFacilities {
  bool each = false;    // a program for each function
  bool many = false;    // one for many
  std::string refused;  // why, where it is neither

  [[nodiscard]] bool any() const { return each || many; }
};

[[nodiscard]] CallFacilities find_call_facilities(const KernelFacts& facts);

// What `doctor` says of it.
[[nodiscard]] Capability calls_capability(const CallFacilities& facilities);

}  // namespace pkprof
