// SPDX-License-Identifier: Apache-2.0
// What a page has in it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/profile.h"

namespace pkprof::test {

// What the browser does: the element's text, base64, gzip, JSON.
[[nodiscard]] nlohmann::json unpacked(const std::string& html);

// Of the profile's page, the profile.
[[nodiscard]] nlohmann::json page_data_of(const Profile& profile);

}  // namespace pkprof::test
