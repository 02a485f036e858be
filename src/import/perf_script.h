// SPDX-License-Identifier: Apache-2.0
// What `perf script` printed of a perf.data, as a Profile.
//
// charged.h says whom its time counts for. Times are what the samples of a clock say; of other
// events (cycles) each counts for the usual distance between two samples of its CPU. What the CPUs
// did between the samples is OTHER.
#pragma once

#include <istream>
#include <string>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// As `perf script` prints it without options, or with `-F +pid`, and with `--header` for what is
// true of the whole. Lines that are none of a sample's are counted and said.
[[nodiscard]] Result<Profile> read_perf_script(std::istream& in);

}  // namespace pkprof
