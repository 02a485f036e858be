// SPDX-License-Identifier: Apache-2.0
// Seccomp filters, as containers have them, refuse system calls to root, too.
#pragma once

#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace pkprof {

[[nodiscard]] inline bool has_seccomp_filter() {
  return prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}

// What to do where something was refused under one.
inline constexpr const char* seccomp_advice =
    "a seccomp filter is in force, as in a container: it must allow bpf(2) and "
    "perf_event_open(2), with CAP_BPF and CAP_PERFMON";

}  // namespace pkprof
