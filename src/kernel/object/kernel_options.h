// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "calls/call_facilities.h"

namespace pkprof {

// DeBox's threads, to be told what is done for them elsewhere: its memory, with where in it they
// are, and the tables that programs read.
struct DeboxMemory {
  int memory = -1;
  int areas = -1;
  uint64_t tids = 0;
  uint64_t threads = 0;
  uint64_t done = 0;
};

struct KernelSideOptions {
  uint64_t frequency_hz = 997;
  bool held = false;      // nobody takes what is in the tables for as long as it goes on
  bool threads = false;   // labels are threads', see PK_ANY_THREAD
  bool hooks = true;      // false: the sampler alone, for benchmarks
  bool measure = false;   // all of the time by entry and exit, and no user stacks
  bool mappings = false;  // mapped() is read: programs, and what sampled processes have mapped
  bool unwind = false;    // and tables are made of the files that those have mapped
  uint32_t clients = 0;   // servers' time is charged to their clients: enum pk_clients_wanted
  bool waits = false;     // threads' waits are counted, too
  uint32_t usage = 0;     // what is used of other resources: enum pk_usage_wanted
  DeboxMemory debox;      // where DeBox is on
  CallFacilities calls;   // by which calls of functions are to be counted, if they are
};

}  // namespace pkprof
