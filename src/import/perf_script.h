// SPDX-License-Identifier: Apache-2.0
// What `perf script` printed of a perf.data, as a Profile.
//
// perf says who was on the CPU, not for whom the kernel worked. So what a stack shows to be an
// interrupt's or a softirq's work is UNCLAIMED:untracked, and never its bystander's; the rest is
// for whoever ran. Times are what the samples of a clock say; of other events (cycles) each counts
// for the usual distance between two samples of its CPU. What the CPUs did between the samples is
// OTHER.
#pragma once

#include <istream>
#include <string>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// As `perf script` prints it without options, or with `-F +pid`, and with `--header` for what is
// true of the whole. Lines that are none of a sample's are counted and said.
[[nodiscard]] Result<Profile> read_perf_script(std::istream& in);

// The same of a file; "-" is standard input. perf's own file (perf.data) is an error that says how
// to have it printed.
[[nodiscard]] Result<Profile> import_perf_script(const std::string& path);

}  // namespace pkprof
