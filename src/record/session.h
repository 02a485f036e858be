// SPDX-License-Identifier: Apache-2.0
// A recording from start to end: what `pkprof record` and `pkprof run` do.
#pragma once

#include <string>

#include "base/result.h"
#include "model/profile.h"
#include "record/record_options.h"

namespace pkprof {

struct Recording {
  Profile profile;
  int command_status = 0;
  int signal = 0;             // that ended it; 0: none did
  std::string command_error;  // why the command could not be executed; there is no profile then
};

// Runs until the command ends, the time is up, or SIGINT or SIGTERM comes; what was gathered is
// kept in each case. `command_status` is the command's exit status as a shell gives it.
[[nodiscard]] Result<Recording> record(const RecordOptions& options);

}  // namespace pkprof
