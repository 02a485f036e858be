// SPDX-License-Identifier: Apache-2.0
// The code of one file, by the addresses that the linker gave it and nm prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pkprof {

struct FileCode {
  struct Function {
    uint64_t start = 0;
    uint64_t end = 0;  // first address past it
    std::string name;
  };

  std::string file;
  std::string build_id;  // lower-case hex, "" when there is none
  // Of all that is executable.
  uint64_t start = 0;
  uint64_t end = 0;
  // By address, disjoint, demangled: what find() answers by. One that has another in its middle is
  // two of them.
  std::vector<Function> functions;
  // As nm prints them, mangled, with every alias; they may overlap. Only where they were wanted.
  std::vector<Function> names;
};

}  // namespace pkprof
