// SPDX-License-Identifier: Apache-2.0
// What all JSON reports begin with, and how they are written. Private to src/report: others would
// have to read the library's headers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

using Json = nlohmann::ordered_json;

// What is true of the whole recording.
[[nodiscard]] Json json_header(const Profile& profile, std::string_view schema, By by);

// One line of ASCII, with a newline. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_line(const Json& object);

}  // namespace pkprof
