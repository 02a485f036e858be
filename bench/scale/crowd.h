// SPDX-License-Identifier: Apache-2.0
// Many processes that mostly sleep, or few that hold many sockets: gone with this object, and with
// this process however that ends.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"

namespace pkprof::scale {

class Crowd {
 public:
  // Each wakes once a second, for some microseconds, at a time of its own.
  [[nodiscard]] static Result<Crowd> processes(uint32_t count);
  // UDP sockets on many addresses of the loopback device, and `packets` a second to any of them.
  [[nodiscard]] static Result<Crowd> sockets(uint32_t count, uint32_t packets);
  Crowd(Crowd&& o) noexcept;
  Crowd& operator=(Crowd&&) = delete;
  ~Crowd();

 private:
  explicit Crowd(pid_t group) : group_(group) {}
  template <typename Start>
  [[nodiscard]] static Result<Crowd> start(Start members);

  pid_t group_;  // process group, and its leader; 0: none
};

}  // namespace pkprof::scale
