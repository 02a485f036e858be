// SPDX-License-Identifier: Apache-2.0
#include "export/html.h"

#include <filesystem>

#include "export/exported_stacks.h"
#include "report/page/page.h"

namespace pkprof {

Result<std::string> export_html(const Profile& profile, const ExportOptions& options) {
  if (!options.pids.empty())
    return fail("the page has all processes: choose one in it, and leave out --pid");
  auto html = page_html(profile, std::filesystem::path(options.input).filename());
  if (!html) return html;
  return deliver(std::move(*html), options);
}

}  // namespace pkprof
