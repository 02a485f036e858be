// SPDX-License-Identifier: Apache-2.0
// Who ended waits: the kernel side's notes in a profile's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "attribution/stacks.h"
#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "process/processes.h"

namespace pkprof {

// What a stack that was taken in the scheduler has from there on, without our own program's frames.
[[nodiscard]] Stacks::Frames from_scheduler_on(const Stacks& stacks, Stacks::Frames frames);
// And of another resource's: from what the tracepoint is in on.
[[nodiscard]] Stacks::Frames behind_programs(const Stacks& stacks, Stacks::Frames frames);

class Wakeups {
 public:
  // By number; nothing where it is not known any more.
  using Fetch = std::function<std::optional<pk_waker>(uint64_t number)>;
  // For whom an object is, as a label; 0: not known.
  using PartyOf = std::function<uint64_t(uint64_t object)>;

  Wakeups(Stacks& stacks, Processes& processes) : stacks_(stacks), processes_(processes) {}
  void ask(Fetch fetch, PartyOf party_of);

  // A row names it, of a thread of that image: it is kept from now on.
  void meet(uint64_t number, uint64_t image);
  [[nodiscard]] const pk_waker* at(uint64_t number) const;
  // Those that were not known any more, or for which there was no room.
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }

  // Whom was waited for.
  [[nodiscard]] Label waited_for(uint64_t number) const;
  // The futex that was waited for: its name, or its address; "" if it was none.
  [[nodiscard]] std::string lock_of(uint64_t number) const;
  WakeupId tell(Profile& profile, uint64_t number, Stacks::Mover& move_frame) const;

  // Stacks of the kernel's code, and of users', that it needs.
  void add_stacks(Stacks::Numbers& kernel, Stacks::Numbers& user) const;
  // Forgets all others.
  void keep(const Stacks::Numbers& numbers);

 private:
  struct Known {
    pk_waker waker;
    uint64_t user = 0;   // number of its stack, by Stacks
    uint64_t party = 0;  // label; 0: not known yet
    std::string lock;    // see lock_of()
  };
  [[nodiscard]] uint64_t party_of(const Known& known) const;

  Stacks& stacks_;
  Processes& processes_;
  Fetch fetch_;
  PartyOf party_of_;
  std::unordered_map<uint64_t, Known> known_;
  uint64_t forgotten_ = 0;
};

}  // namespace pkprof
