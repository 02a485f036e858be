// SPDX-License-Identifier: Apache-2.0
// A small machine, always the same, for tests of formats and reports: a web server whose packets
// are received while others run, a kernel thread that works for it, a database that writes back,
// names that attack whatever prints them, and something of every kind of label, basis and frame.
#pragma once

#include "model/profile.h"

namespace pkprof::test {

// 2 CPUs, 10 s, watched for 0.31 of the time; what the samples do not cover is 1.1 s.
[[nodiscard]] Profile small_machine();

// 2 CPUs, 10 s, recorded with threads: two containers and a pod, units, a process in two threads,
// one whose cgroup is not known, kernel threads; members of one group that work for each other.
[[nodiscard]] Profile grouped_machine();

// 1 CPU, 1 s: a parser whose functions call each other around, code without symbols above and below
// main, a page fault, and interrupts whose calls were counted.
[[nodiscard]] Profile called_machine();

// 2 CPUs, 10 s: calls of the kernel's functions were counted while they were sampled, in processes
// and for them, of others and of nobody.
[[nodiscard]] Profile counted_machine();

}  // namespace pkprof::test
