// SPDX-License-Identifier: Apache-2.0
// A format that other tools read. Each is a file of its own, which ends with its ExportFormat, and
// a line in formats.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

struct ExportOptions {
  // A file, and without it standard output; for gmon a directory, and without it the current one.
  std::string output;
  std::vector<uint32_t> pids;          // empty: all; otherwise the rest is OTHER, or left out
  std::string input = "pkprof.pb.gz";  // what the profile's file is called
  bool ran_on = false;                 // stacks are of who was on the CPU, not of who was served
};

struct ExportFormat {
  std::string_view name;   // --to NAME
  std::string_view about;  // for the help: what it is, what it is for
  // Writes it. What the user is to be told comes back, for standard output.
  Result<std::string> (*write)(const Profile& profile, const ExportOptions& options);
};

}  // namespace pkprof
