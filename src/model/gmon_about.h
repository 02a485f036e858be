// SPDX-License-Identifier: Apache-2.0
// What a symbol file that pkprof wrote for gprof says besides names: what was measured, for whom,
// where functions are from, and which had their calls counted. gprof does not look at it; `pkgprof`
// does. A JSON object, schema pkprof.gmon/1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

struct GmonAbout {
  struct Part {
    LabelKind kind = LabelKind::process;
    uint32_t pid = 0;  // of a process, as are the rest
    std::string comm;
    std::string exe;  // "" when it could not be had
    bool operator==(const Part&) const = default;
  };
  struct FunctionAbout {
    int32_t file = -1;  // a place in files, or none
    FrameKind kind = FrameKind::user;
    bool root = false;     // no function: whom the time was for
    bool counted = false;  // arcs into it are calls; otherwise they are ticks of the clock
    bool operator==(const FunctionAbout&) const = default;
  };

  std::string kernel;
  std::string host;
  uint32_t cpus = 0;
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t unwatched_ns = 0;  // as in Meta
  uint64_t idle_ns = 0;
  uint64_t steal_ns = 0;
  uint64_t unsampled_ns = 0;  // of which nothing is known
  std::vector<Part> parts;
  std::vector<std::string> files;
  std::vector<FunctionAbout> functions;  // of each symbol, in their order; the last has none
  bool operator==(const GmonAbout&) const = default;
};

[[nodiscard]] std::string encode_gmon_about(const GmonAbout& about);
[[nodiscard]] Result<GmonAbout> decode_gmon_about(std::string_view text);

}  // namespace pkprof
