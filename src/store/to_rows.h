// SPDX-License-Identifier: Apache-2.0
// A cut as the rows of a store.
#pragma once

#include "store/cut.h"
#include "store/rows.h"

namespace pkprof::store {

struct CutAsRows {
  ContentRows content;
  CutRows cut;
};

// Throws a Failure where the cut is not of one host, or has a figure that a database cannot hold.
// The timeline is left out: cuts have times between them, and merge() leaves it out, too.
[[nodiscard]] CutAsRows rows_of(const Cut& cut, uint64_t seed);

}  // namespace pkprof::store
