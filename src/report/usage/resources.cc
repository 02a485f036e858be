// SPDX-License-Identifier: Apache-2.0
#include "report/usage/resources.h"

#include "model/merge.h"
#include "report/usage/usage_text.h"
#include "report/waits/waits_text.h"

namespace pkprof {

std::string resources_text(const Profile& profile, const ReportOptions& options) {
  ReportOptions how = options;
  if (how.by == By::client) how.by = By::pid;
  std::string text;
  if (has_resource(profile, Resource::wait)) text += "\n" + waits_tables(profile, how);
  if (const std::string usage = usage_tables(profile, how); !usage.empty()) text += "\n" + usage;
  return text;
}

}  // namespace pkprof
