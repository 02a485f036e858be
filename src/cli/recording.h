// SPDX-License-Identifier: Apache-2.0
// The options that all subcommands share that record, and recording as they ask.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "collect/session.h"

namespace pkprof {

struct RecordingOptions {
  RecordOptions record;
  bool all = false;
  bool sample_only = false;
  double budget_percent = 1;
};

// Whom to record, for how long, and how many samples to take.
void add_target_options(ArgParser& parser, RecordingOptions& o);
// These, and what else can be said of a recording.
void add_recording_options(ArgParser& parser, RecordingOptions& o);

[[nodiscard]] Result<Recording> record_with(RecordingOptions& options, const CommandLine& line);
// Nothing where it has complained; `status` is then how to end.
std::optional<Recording> record_as_asked(RecordingOptions& options, const CommandLine& line,
                                         int& status);

}  // namespace pkprof
