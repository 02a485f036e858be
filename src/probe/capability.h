// SPDX-License-Identifier: Apache-2.0
// A capability: something that pkprof can do on a kernel that lets it, and what the user loses
// where the kernel does not.
#pragma once

#include <string>
#include <vector>

namespace pkprof {

struct Capability {
  std::string name;  // "network: receivers"
  bool works = false;
  std::string how;    // by what means, or why it is refused
  std::string costs;  // what the user loses without it
};

using Capabilities = std::vector<Capability>;

}  // namespace pkprof
