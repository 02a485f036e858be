// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/sink.h"

namespace pkprof {

// pprof files in a directory, HOST-TIME.pb.gz; the oldest go when they are too old or too many.
class FilesSink : public Sink {
 public:
  explicit FilesSink(const SinkConfig& config) : directory_(config.directory), keep_(config.keep) {}
  Result<> put(const CutFile& cut) override;

 private:
  void retain() const;

  std::string directory_;
  Keep keep_;
};

}  // namespace pkprof
