// SPDX-License-Identifier: Apache-2.0
// Hard interrupts on the user side: what they are called, and what they took while their hooks
// were off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/parties.h"
#include "pkprof/user_abi.h"

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

// What interrupts take is on other rows while the hooks on them are off. It is estimated from what
// they took when the hooks were on last, process by process that they interrupted.
class UnseenInterrupts {
 public:
  using Counts = std::vector<std::pair<pk_key, pk_count>>;

  // Rows of the time since the last call, of which the hooks were on for `on_ns` and off for
  // `off_ns`. Their sum stays the same; rows may come twice.
  void estimate(Counts& counts, uint64_t on_ns, uint64_t off_ns);
  // What was learned of interrupts for objects was for these: an object's number may come to be
  // another one's.
  void tell_learned(const Parties::Of& parties_of);

 private:
  // Of the time that a process had the CPU, with its interrupts.
  struct Sum {
    uint64_t seen = 0;  // in interrupts
    uint64_t sampled = 0;
  };
  using Sums = std::unordered_map<uint64_t, Sum>;
  struct Taken {
    double in_turn = 0;  // of the time that went by with the hooks on, what interrupts took
    double part = 0;     // of the process's own time, at least
    Counts rows;         // for whom
  };

  void learn(const Counts& counts, const Sums& sums, double on_ns, double all_ns);

  std::unordered_map<uint64_t, Taken> taken_;  // by the process that was interrupted
  bool learned_ = false;
  uint64_t learned_ns_ = 0;  // with the hooks on, that this is of; less and less as it grows old
  uint64_t owed_ns_ = 0;     // time off before anything was learned
};

}  // namespace pkprof
