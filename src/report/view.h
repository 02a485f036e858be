// SPDX-License-Identifier: Apache-2.0
// A view: what `pkprof report --view NAME` prints. Each is a file of its own, which ends with its
// ReportView, and a line in src/cli/report.cc.
#pragma once

#include <string>
#include <string_view>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

struct ReportView {
  std::string_view name;
  std::string (*text)(const Profile& profile, const ReportOptions& options);
  std::string (*json)(const Profile& profile, const ReportOptions& options);
};

}  // namespace pkprof
