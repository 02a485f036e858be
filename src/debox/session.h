// SPDX-License-Identifier: Apache-2.0
// What `pkprof debox` does: a command's system calls, from its first to its last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/system_calls.h"

namespace pkprof {

struct DeboxOptions {
  std::vector<std::string> command;
  std::string user;              // whom it runs as; empty: as we do
  std::vector<uint32_t> pids;    // processes to look at, if there is no command
  std::vector<uint32_t> attach;  // programs that use the library: they are served, no more
  // Serve the command, if it uses the library, and no more: nobody else pays for calls.
  bool serve_only = false;
  double seconds = 0;              // 0: until the command ends, or a signal comes
  bool follow = true;              // threads and processes that it begins, too
  std::vector<std::string> calls;  // names of those that are of interest; none: all
  // Also what the kernel does for a call elsewhere: takes a recording beside it.
  bool elsewhere = true;
  double budget = 0.05;  // of each CPU's time, for that
  size_t slowest = 10;   // of which the whole record is kept
  // Functions of the kernel, or patterns, that a call's trace is of; none: no traces.
  std::vector<std::string> trace;
  double interval = 0;                                 // seconds; 0: not shown before the end
  std::function<bool(const SystemCalls& since)> show;  // what came since; false ends it
  std::function<Result<>()> begins;  // all is prepared: the command is let go, if this says so
  bool lines = true;    // files and lines of places in the kernel, where they are to be had
  bool stacks = false;  // of the program, of calls whose record is kept
  // Whole records of all calls that take at least so long are handed over as they come, with the
  // call's name and names of places. False ends it.
  uint64_t min_ns = 0;
  std::function<bool(const SlowCall& slow, const std::string& call,
                     const std::map<uint32_t, std::string>& places)>
      each;
};

struct DeboxRun {
  SystemCalls calls;
  int command_status = 0;
  std::string command_error;  // why the command could not be executed
};

[[nodiscard]] Result<DeboxRun> watch_calls(const DeboxOptions& options);

}  // namespace pkprof
