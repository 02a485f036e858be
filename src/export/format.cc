// SPDX-License-Identifier: Apache-2.0
#include "export/format.h"

#include <algorithm>
#include <array>

#include "export/gmon.h"

namespace pkprof {

namespace {

constexpr std::array formats = {
    ExportFormat{"gmon", "gmon.out files with their symbols, for GNU gprof", export_gmon},
};

}  // namespace

std::span<const ExportFormat> export_formats() {
  return formats;
}

const ExportFormat* export_format(std::string_view name) {
  const auto it = std::ranges::find(formats, name, &ExportFormat::name);
  return it == formats.end() ? nullptr : &*it;
}

}  // namespace pkprof
