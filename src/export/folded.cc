// SPDX-License-Identifier: Apache-2.0
// Folded stacks, a line each, for flame graphs: "party;main;read;«syscall:read»;vfs_read 12000", in
// nanoseconds.
#include <algorithm>

#include "export/exported_stacks.h"
#include "export/format.h"

namespace pkprof {
namespace {

// A semicolon ends a frame, wherever it is.
std::string one_frame(std::string name) {
  std::ranges::replace(name, ';', ':');
  return name.empty() ? "[unknown]" : name;
}

}  // namespace

static Result<std::string> export_folded(const Profile& profile, const ExportOptions& options) {
  const ExportedStacks stacks = export_stacks(profile, options);
  std::vector<std::string> names;
  names.reserve(stacks.frames.size());
  for (const ExportedFrame& frame : stacks.frames) names.push_back(one_frame(frame.name));
  std::string text;
  for (const ExportedParty& party : stacks.parties) {
    const std::string root = one_frame(party.name);
    for (const auto& [frames, ns] : party.stacks) {
      text += root;
      for (const uint32_t frame : frames) text.append(";").append(names[frame]);
      text.append(" ").append(std::to_string(ns)).append("\n");
    }
  }
  return deliver(std::move(text), options);
}

extern const ExportFormat folded_format{"folded", "stacks, a line each, for flame graphs",
                                        export_folded};

}  // namespace pkprof
