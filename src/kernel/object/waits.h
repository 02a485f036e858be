// SPDX-License-Identifier: Apache-2.0
// Where threads' waits are counted: what the kernel side says of them besides its rows.
#pragma once

#include <cstdint>
#include <optional>

#include "pkprof/user_abi.h"

namespace pkprof {

class KernelObject;

class Waits {
 public:
  explicit Waits(KernelObject& object) : object_(object) {}

  // Who ended a wait; nothing where that was too long ago.
  [[nodiscard]] std::optional<pk_waker> waker(uint64_t number) const;
  // Counts those that go on, up to now.
  void count_ongoing();

 private:
  KernelObject& object_;
};

}  // namespace pkprof
