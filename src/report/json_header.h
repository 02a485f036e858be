// SPDX-License-Identifier: Apache-2.0
// What JSON reports have in common, and how they are written. Private to src/report: others would
// have to read the library's headers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/profile.h"
#include "report/clients.h"
#include "report/groups.h"
#include "report/options.h"

namespace pkprof {

using Json = nlohmann::ordered_json;

// What is true of the whole recording.
[[nodiscard]] Json json_header(const Profile& profile, std::string_view schema, By by);

// All of schema pkprof.report/1: what report_json() prints.
[[nodiscard]] Json report_object(const Profile& profile, const ReportOptions& options);

// What a server did for its clients, one by one.
[[nodiscard]] Json for_clients(const Profile& profile, const Server& server);

// A row's group: {"pid", "comm"}, or what it is called.
[[nodiscard]] Json party_json(const Profile& profile, By by, const Group& group);

// One line of ASCII, with a newline. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_line(const Json& object);

}  // namespace pkprof
