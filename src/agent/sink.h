// SPDX-License-Identifier: Apache-2.0
// Where cuts go.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/config.h"
#include "base/result.h"

namespace pkprof {

// What a cut is known by, with the profile itself: a file of the spool.
struct CutFile {
  std::string path;
  std::string host;
  std::string boot;
  uint64_t start_unix_ns = 0;
  const std::map<std::string, std::string>& labels;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Takes a copy. Whoever calls tries again after an error, with the same cut, also after the sink
  // had taken it and could not say so.
  virtual Result<> put(const CutFile& cut) = 0;
};

}  // namespace pkprof
