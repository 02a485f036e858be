// SPDX-License-Identifier: Apache-2.0
// The page that `pkprof report --html` writes, as a format among the others.
#include <filesystem>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "report/page/page.h"

namespace pkprof {

static Result<std::string> export_html(const Profile& profile, const ExportOptions& options) {
  if (!options.pids.empty())
    return fail("the page has all processes: choose one in it, and leave out --pid");
  auto html = page_html(profile, std::filesystem::path(options.input).filename());
  if (!html) return html;
  return deliver(std::move(*html), options);
}

extern const ExportFormat html_format{"html", "the page, to look at in a browser", export_html};

}  // namespace pkprof
