// SPDX-License-Identifier: Apache-2.0
// Calls that a program compiled with -pg counted itself, joined to a listing that has it.
#pragma once

#include <string>

#include "report/listing/listing.h"

namespace pkprof {

struct ProgramCalls {
  uint64_t calls = 0;      // that were joined
  bool times_too = false;  // the listing had no time of the program's own code
  uint64_t self_ns = 0;    // by the program's own clock
};

// `program` is a listing of its gmon.out alone; `whose` the process, as the listing names it
// ("137"). Functions are known by their names, and those that no sample was in are added.
//
// A program counts the calls that come from its own code. In stacks by frame pointers a caller is
// missing where a function had just begun or was about to end, so a few of them show calls that
// were none, from where is no telling. A function whose calls were counted is taken to have been
// called in these ways alone, unless a twentieth of its time or more was called from other files:
// as a function that qsort() calls back.
//
// Both have measured the same time, the program by its own clock (mostly 100 Hz, of its own
// functions alone) and the listing by its samples: so times are the listing's, and the program's
// only where the listing has none for any of the process's functions.
ProgramCalls add_program_calls(ListingData& listing, const ListingData& program,
                               const std::string& whose);

}  // namespace pkprof
