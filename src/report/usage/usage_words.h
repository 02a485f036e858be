// SPDX-License-Identifier: Apache-2.0
// How usage is told, on the terminal and in the page.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

struct UsageWords {
  const char* question;  // what a table of it answers
  const char* count;     // what is counted: "requests"
};

// Of a resource that used_resources() may give.
[[nodiscard]] UsageWords words_of(Resource resource);

// One who used it, held it or is at its other end: "nginx[812]", "the kernel", "unclaimed:
// dropped". Cleaned.
[[nodiscard]] std::string usage_party(const Profile& profile, By by, const Group& group,
                                      bool unicode);

}  // namespace pkprof
