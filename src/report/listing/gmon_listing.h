// SPDX-License-Identifier: Apache-2.0
// A listing of gmon.out files: those that pkprof wrote for gprof, and those that a program compiled
// with -pg left. Times of calls are divided as gprof does (divided_graph.h), since no stacks are
// known.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/gmon.h"
#include "model/gmon_about.h"
#include "report/listing/listing.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct GmonSource {
  std::string path;  // for sentences
  Gmon gmon;
  std::vector<FileCode::Function> functions;  // by address
  // Of a file that pkprof wrote. Without it all functions are a program's own, and counts are of
  // calls.
  std::optional<GmonAbout> about;
  std::string whose;  // of a program: the process
  std::string where;  // and its file
};

// Sources that pkprof wrote are to be of one recording.
[[nodiscard]] Result<ListingData> gmon_listing(std::span<const GmonSource> sources);

}  // namespace pkprof
