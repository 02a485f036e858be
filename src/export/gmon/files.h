// SPDX-License-Identifier: Apache-2.0
// The files of gmon.h found and read again, and the gmon.out of a program that was compiled with
// -pg.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/listing/gmon_listing.h"

namespace pkprof {

// Names of files of both sides in a directory: of these processes (gmon.out.137.cat), of each at
// least one; without pids that of all (gmon.out.all). Empty if they are not all there.
[[nodiscard]] std::vector<std::string> find_gmon_files(const std::string& directory,
                                                       const std::vector<uint32_t>& pids);
// With the symbols of its name.
[[nodiscard]] Result<GmonSource> read_gmon_file(const std::string& path);

// A process whose gmon.out is looked for.
struct GmonProgram {
  uint32_t pid = 0;
  std::string exe;
};
// What the process may have written itself, no earlier than that: gmon.out.PID, as glibc names it
// for GMON_OUT_PREFIX, or gmon.out. Nothing unless its addresses are of functions of the program.
[[nodiscard]] std::optional<GmonSource> find_program_gmon(const std::string& directory,
                                                          const GmonProgram& program,
                                                          uint64_t since_unix_ns);
// The same of a file that was named; a sentence, if it is not of the program.
[[nodiscard]] Result<GmonSource> read_program_gmon(const std::string& path,
                                                   const GmonProgram& program);

}  // namespace pkprof
