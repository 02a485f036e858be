// SPDX-License-Identifier: Apache-2.0
#include "report/usage/resources.h"

#include "model/merge.h"
#include "report/json_header.h"
#include "report/usage/usage.h"
#include "report/usage/usage_json.h"
#include "report/usage/usage_text.h"
#include "report/waits/waits_json.h"
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

std::string report_json_with(const Profile& recorded, const Profile& cpu,
                             const ReportOptions& options) {
  Json report = report_object(cpu, options);
  if (has_resource(recorded, Resource::wait)) report["waits"] = waits_array(recorded, options);
  if (!used_resources(recorded).empty()) report["resources"] = resources_object(recorded, options);
  return json_line(report);
}

}  // namespace pkprof
