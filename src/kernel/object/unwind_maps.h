// SPDX-License-Identifier: Apache-2.0
// Where the kernel side has its tables of how user code's frames are left: a map a file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

struct pk_unwind_block;

namespace pkprof {

class KernelObject;

class UnwindMaps {
 public:
  explicit UnwindMaps(KernelObject& object) : object_(object) {}

  // Whether this recording's user stacks are unwound by them.
  [[nodiscard]] bool wanted() const;
  // A table for the file of this number: `fill` writes its blocks. Waits until programs can see it,
  // some ten milliseconds. May be called from a thread of its own, as may the others.
  using Fill = std::function<void(std::span<pk_unwind_block>)>;
  [[nodiscard]] Result<> put(uint64_t file, size_t blocks, const Fill& fill) const;
  void remove(uint64_t file) const;
  // When a rule was last looked for in the file's table: ktime, ns; 0: never, or there is none.
  [[nodiscard]] uint64_t used(uint64_t file) const;
  [[nodiscard]] int unfinished() const;  // the ring of pk_unfinished

 private:
  KernelObject& object_;
};

}  // namespace pkprof
