// SPDX-License-Identifier: Apache-2.0
// All formats, by name.
#pragma once

#include <span>
#include <string_view>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] std::span<const ExportFormat* const> export_formats();
// Null when there is none of that name.
[[nodiscard]] const ExportFormat* export_format(std::string_view name);

}  // namespace pkprof
