// SPDX-License-Identifier: Apache-2.0
// Turns a profiler off while its process stays, and on again: all events of perf's that it has open
// are disabled, and where it has more in the kernel than that, it is told to take it out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof::overhead {

// The two ends of what `record --control` of pkprof and perf is told by: FIFOs in a directory.
class ControlFifos {
 public:
  // Makes them, `name`.commands and `name`.answers; those that are there are made anew.
  [[nodiscard]] static Result<ControlFifos> make(const std::string& path);
  [[nodiscard]] std::string setting() const;  // what stands behind --control
  // Waits until it is done.
  [[nodiscard]] Result<> say(const std::string& command) const;

 private:
  ControlFifos(std::string path, Fd commands, Fd answers)
      : path_(std::move(path)), commands_(std::move(commands)), answers_(std::move(answers)) {}

  std::string path_;
  Fd commands_;
  Fd answers_;
};

// Events of perf's of another process, in our hands, too.
class PerfEvents {
 public:
  [[nodiscard]] static Result<PerfEvents> of(pid_t pid);
  [[nodiscard]] Result<> enable(bool on) const;
  // What they have counted, all together; of those of a sampling clock, ns that it has run.
  [[nodiscard]] Result<uint64_t> counted() const;

 private:
  std::vector<Fd> events_;
};

}  // namespace pkprof::overhead
