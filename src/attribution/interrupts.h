// SPDX-License-Identifier: Apache-2.0
// Hard interrupts on the user side: what they are called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pkprof {

// Names of devices' interrupts, asked for when one is first met.
class InterruptNames {
 public:
  // "virtio0-req.0", with several handlers "a,b"; the number where the kernel has no name.
  [[nodiscard]] const std::string& of(uint16_t number);

 private:
  std::unordered_map<uint16_t, std::string> names_;
};

// Functions that CPUs call for one another on the kernel's own behalf.
[[nodiscard]] bool call_of_kernel(std::string_view function);

}  // namespace pkprof
