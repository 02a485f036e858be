// SPDX-License-Identifier: Apache-2.0
#include "export/formats.h"

#include <algorithm>
#include <array>
#include <string>

// One line a format, in the order of the help. What it is, its own file says: as NAME_format.
// clang-format off
#define EACH_FORMAT(format) \
  format(csv) \
  format(dot) \
  format(firefox) \
  format(folded) \
  format(gmon) \
  format(html) \
  format(json) \
  format(perfetto) \
  format(speedscope)
// clang-format on

namespace pkprof {

#define DECLARED(name) extern const ExportFormat name##_format;
EACH_FORMAT(DECLARED)

std::span<const ExportFormat* const> export_formats() {
#define LISTED(name) &name##_format,
  static constexpr std::array formats = {EACH_FORMAT(LISTED)};
  return formats;
}

const ExportFormat* export_format(std::string_view name) {
  const auto formats = export_formats();
  const auto it = std::ranges::find(formats, name, &ExportFormat::name);
  return it == formats.end() ? nullptr : *it;
}

}  // namespace pkprof
