// SPDX-License-Identifier: Apache-2.0
// Waiting, by who waited, for what and for whom.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// What one waited for in one way.
struct WaitReason {
  std::string kind;  // "disk", "reply", ...: the source without its class
  GroupId whom = 0;  // whom it waited for; of "runnable", who had the CPU
  uint64_t ns = 0;
  uint64_t count = 0;  // waits, about
  // By who had woken those who woke it, the last one first; "" for nobody in the meantime.
  std::map<std::vector<GroupId>, uint64_t> chains;
};

struct Waiting {
  GroupId who = 0;
  uint64_t cpu_ns = 0;   // on a CPU, whomever that worked for
  uint64_t wait_ns = 0;  // but for what it was idle
  uint64_t idle_ns = 0;
  std::map<std::string, uint64_t> kinds;
  std::vector<WaitReason> reasons;  // the longest first
};

struct Waits {
  Groups groups;
  std::vector<Waiting> rows;  // the longest first
};

// "disk" of "wait:disk".
[[nodiscard]] std::string_view wait_kind(std::string_view source);
// Who had mostly woken the waker, and for how long that was so; who had woken that one, as long as
// that is most of it, too. Empty where mostly nobody had.
struct WakerChain {
  uint64_t ns = 0;
  std::vector<GroupId> wakers;  // the last one first
};
[[nodiscard]] WakerChain main_chain(const WaitReason& reason);

// Whether a server waits by choice: for its next request, for a signal, for nothing in particular.
[[nodiscard]] bool is_idle_wait(std::string_view kind);
// Of a profile with all of its resources, which must outlive it.
[[nodiscard]] Waits waits_of(const Profile& profile, By by, std::span<const uint32_t> pids);

}  // namespace pkprof
