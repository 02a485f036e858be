// SPDX-License-Identifier: Apache-2.0
#include "process/callers_limits.h"

#include <signal.h>
#include <sys/resource.h>

namespace pkprof {
namespace {

struct Callers {
  rlimit memory{};
  rlimit files{};
  sigset_t mask{};

  Callers() noexcept {
    getrlimit(RLIMIT_MEMLOCK, &memory);
    getrlimit(RLIMIT_NOFILE, &files);
    sigprocmask(SIG_SETMASK, nullptr, &mask);
  }
};

const Callers callers;  // as it is before main(), whoever changes it

}  // namespace

void raise_limits() {
  // Kernels before 5.11 charge BPF memory to this limit; where it cannot be raised, loading says
  // so.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  const rlimit most_files{callers.files.rlim_max, callers.files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most_files);
}

void give_back_callers_limits() {
  setrlimit(RLIMIT_MEMLOCK, &callers.memory);
  setrlimit(RLIMIT_NOFILE, &callers.files);
  sigprocmask(SIG_SETMASK, &callers.mask, nullptr);
}

}  // namespace pkprof
