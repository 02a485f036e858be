// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "agent/sink.h"
#include "store/store.h"

namespace pkprof {

// A store of profiles, by its URL, where cuts of one identity are one; see store.h.
class StoreSink : public Sink {
 public:
  explicit StoreSink(const SinkConfig& config) : url_(config.url), keep_(config.keep) {}
  Result<> put(const CutFile& cut) override;

 private:
  Result<> open();
  Result<> put_into(const CutFile& cut);
  Result<> retain();

  std::string url_;
  Keep keep_;
  std::unique_ptr<Store> store_;  // as long as it does what is asked
  std::chrono::steady_clock::time_point next_retain_;
};

}  // namespace pkprof
