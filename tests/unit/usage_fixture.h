// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/profile.h"

namespace pkprof::test {

// 2 CPUs, 5 s, recorded with locks, disks, networks and memory: a database that writes to two disks
// and sends, one that waits for its lock, packets that are nobody's, and one whose name attacks.
struct UsageMachine {
  static constexpr uint64_t ms = 1'000'000;  // nanoseconds
  static constexpr uint64_t mib = 1 << 20;

  Profile profile;
  LabelId database, waiter, hostile, kernel, nobody, forgotten, peer;

  UsageMachine();

 private:
  LabelId process(const char* comm, uint32_t pid);
  FrameId frame(FrameKind kind, const char* name);
  // The device, or what else is the innermost, then how; and where in the code that was.
  void use(LabelId who, Resource of, const char* source, const char* leaf, uint64_t bytes,
           uint64_t count, uint64_t ns = 0, Basis basis = Basis::own);
  void lock(LabelId who, LabelId holder, const char* source, const char* name,
            uint64_t milliseconds, uint64_t count);
};

}  // namespace pkprof::test
