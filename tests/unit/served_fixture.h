// SPDX-License-Identifier: Apache-2.0
// A browser whose proxy asks a database, clients that only ask, and servers that were not selected.
#pragma once

#include <cstdint>

#include "model/profile.h"

namespace pkprof::test {

inline constexpr uint64_t one_ms = 1'000'000;  // nanoseconds

// 2 CPUs, 1 s. What each costs, what of that was for others, and what it costs with its servers, in
// milliseconds:
//
//   browser      100   50    0  695   nginx 300, postgres 330 and an unselected server 15 for it
//   nginx        200  358  348   17   postgres 7 for it
//   postgres     300  362  357    5
//   curl         150    0    0   20   postgres 20 for it; took no time itself
//   192.0.2.7      -    0    0   40   nginx 40 for it
//   OTHER             15   15    8   nginx 8 for it
//   KERNEL            12    0   12
//   IDLE            1000    0 1000
//   unsampled        203    0  203
//
// nginx and postgres are in one control group, /shop. The browser and nginx are one program.
struct ServedMachine {
  Profile profile;
  LabelId browser = 0, nginx = 0, postgres = 0, curl = 0, remote = 0, other = 0;

  ServedMachine();
};

}  // namespace pkprof::test
