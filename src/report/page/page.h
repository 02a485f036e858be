// SPDX-License-Identifier: Apache-2.0
// The page: a profile to look at, to search and to zoom into, in one HTML file that needs no
// network and no other file. Its program is web/, bundled when pkprof is built; the profile is in
// it packed (gzip, base64), so that no name in it is ever markup.
#pragma once

#include <string>

#include "base/result.h"
#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// `name`: what the file is called.
[[nodiscard]] Result<std::string> page_html(const Profile& profile, const std::string& name);

// The profile `b`, and what is different from `a`: rows as `by` says.
[[nodiscard]] Result<std::string> diff_page_html(const Profile& a, const std::string& name_a,
                                                 const Profile& b, const std::string& name_b,
                                                 By by);

}  // namespace pkprof
