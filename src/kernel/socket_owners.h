// SPDX-License-Identifier: Apache-2.0
// Who holds which socket, as the kernel tells when it is asked.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace pkprof {

class KernelObject;

class SocketOwners {
 public:
  explicit SocketOwners(KernelObject& object) : object_(object) {}

  // Returns false where the kernel has no such iterator.
  bool ask();
  [[nodiscard]] bool were_told() const { return were_told_; }  // when they were asked for last
  // A label, 0 when not known.
  [[nodiscard]] uint64_t of(uint64_t object) const;
  // Entries that asking found too many for the table: those asked for longest ago are forgotten.
  [[nodiscard]] uint64_t without_room() const { return without_room_; }
  Result<> forget();

 private:
  KernelObject& object_;
  uint64_t without_room_ = 0;
  bool were_told_ = false;
};

}  // namespace pkprof
