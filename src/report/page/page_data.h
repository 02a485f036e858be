// SPDX-License-Identifier: Apache-2.0
// What the page knows of a profile, as JSON (web/src/data.ts reads it). Rows of tables are the
// ledger's own: the page adds up nothing that a report has added up already. Names are cleaned.
// Private to src/report.
#pragma once

#include <cstdint>
#include <string>

#include "model/profile.h"
#include "report/json_header.h"

namespace pkprof {

enum class PageRole : uint8_t {
  alone,
  after,   // shown, with what is different from one before: of CPU time, and no other resources
  before,  // compared with, and not shown: it has no tables
};

// All but "waits" and "resources" is of one resource: CPU time, where the profile has any.
[[nodiscard]] Json page_data(const Profile& whole, const std::string& name, PageRole role);

}  // namespace pkprof
