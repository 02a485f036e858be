// SPDX-License-Identifier: Apache-2.0
#include "agent/make_sink.h"

#include "agent/files_sink.h"
#include "agent/store_sink.h"

namespace pkprof {

std::unique_ptr<Sink> make_sink(const SinkConfig& config) {
  if (config.type == "store") return std::make_unique<StoreSink>(config);
  return std::make_unique<FilesSink>(config);
}

}  // namespace pkprof
