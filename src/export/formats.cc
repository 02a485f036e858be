// SPDX-License-Identifier: Apache-2.0
#include "export/formats.h"

#include <algorithm>
#include <array>

#include "export/csv.h"
#include "export/dot.h"
#include "export/firefox.h"
#include "export/folded.h"
#include "export/gmon.h"
#include "export/html.h"
#include "export/json.h"
#include "export/perfetto.h"
#include "export/speedscope.h"

namespace pkprof {

namespace {

constexpr std::array formats = {
    ExportFormat{"csv", "a table of who ran, who was served, by what and why", export_csv},
    ExportFormat{"dot", "the call graph, for GraphViz", export_dot},
    ExportFormat{"firefox", "stacks, for profiler.firefox.com", export_firefox},
    ExportFormat{"folded", "stacks, a line each, for flame graphs", export_folded},
    ExportFormat{"gmon", "gmon.out files with their symbols, for GNU gprof", export_gmon},
    ExportFormat{"html", "the page, to look at in a browser", export_html},
    ExportFormat{"json", "all that is in the profile", export_json},
    ExportFormat{"perfetto", "the timeline, for Perfetto and chrome://tracing", export_perfetto},
    ExportFormat{"speedscope", "stacks, for speedscope.app", export_speedscope},
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
