// SPDX-License-Identifier: Apache-2.0
// The options that all subcommands share that record, and recording as they ask.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "record/session.h"

namespace pkprof {

struct RecordingOptions {
  RecordOptions record;
  bool all = false;
  bool sample_only = false;
  bool clients = false;
  bool client_ports = false;
  std::vector<std::string> resources;
  double budget_percent = 5;
  bool quiet = false;
  std::string control;  // as Control::open() has it
};

// Whom to record, for how long, and how many samples to take.
void add_target_options(ArgParser& parser, RecordingOptions& o);
// These, and what else can be said of a recording.
void add_recording_options(ArgParser& parser, RecordingOptions& o);

// Of those that show what else was recorded.
void add_resources_option(ArgParser& parser, RecordingOptions& o);
// Those that were asked for, but for CPU time.
[[nodiscard]] std::vector<Resource> asked_resources(const RecordingOptions& o);

// To pause it from outside.
void add_control_options(ArgParser& parser, RecordingOptions& o);

// Of those that show how a recording goes: record_as_asked().
void add_quiet_option(ArgParser& parser, RecordingOptions& o);

[[nodiscard]] Result<Recording> record_with(RecordingOptions& options, const CommandLine& line);
// How it goes is on a line of standard error while it goes, where that is a terminal that no
// command writes to. Nothing where it has complained; `status` is then how to end.
std::optional<Recording> record_as_asked(RecordingOptions& options, const CommandLine& line,
                                         int& status);

// To the user at the end, where standard error is a terminal and he wants to be told.
void tell(const RecordingOptions& options, const std::string& text);

}  // namespace pkprof
