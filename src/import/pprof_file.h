// SPDX-License-Identifier: Apache-2.0
// A pprof file of another program's (a Go program's CPU profile, one of perf's by way of
// perf_to_profile, a profiling service's), as a Profile.
//
// Its CPU time is what has the name "cpu" and a unit of time, or a number of samples where the file
// says which time is between two. Other profiles (of memory, of waiting) are an error that says
// what they are of. Processes are those that labels name (pid, comm and the like); without such
// labels all of it is one process, by the name of the program that is mapped first. Time that the
// file's duration has beyond its samples is OTHER, on as many CPUs as the samples need.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// Gzip'd or not.
[[nodiscard]] Result<Profile> read_foreign_pprof(std::span<const std::byte> bytes);

}  // namespace pkprof
