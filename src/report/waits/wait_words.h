// SPDX-License-Identifier: Apache-2.0
// How waiting is told, on the terminal and in the page.
#pragma once

#include <string>
#include <string_view>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// One who waits or is waited for: "nginx[812]", "the kernel". Cleaned.
[[nodiscard]] std::string wait_party(const Profile& profile, By by, const Group& group,
                                     bool unicode);

// What one waited for: "for the disk", with whom it names. `whom` is a wait_party().
[[nodiscard]] std::string wait_sentence(std::string_view kind, const std::string& whom,
                                        bool is_itself);

}  // namespace pkprof
