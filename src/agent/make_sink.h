// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/sink.h"

namespace pkprof {

// By its type. Nothing is asked of what is behind it before the first cut.
[[nodiscard]] std::unique_ptr<Sink> make_sink(const SinkConfig& config);

}  // namespace pkprof
