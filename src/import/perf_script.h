// SPDX-License-Identifier: Apache-2.0
// What `perf script` printed of a perf.data, as a Profile; see perf_sample.h for its grammar.
//
// charged.h says whom its time counts for. Of several events one is taken. Samples of a clock stand
// for their periods, those of other events (cycles) each for the usual distance between two of
// their CPU. What the CPUs did between the samples is OTHER.
#pragma once

#include <istream>
#include <string_view>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// `event`: the one to take, as it was printed, without modifiers; "": a clock, or the one that
// comes first. With `--header` the file says what is true of the whole. Lines that are none of a
// sample's are counted and said.
[[nodiscard]] Result<Profile> read_perf_script(std::istream& in, std::string_view event = "");

}  // namespace pkprof
