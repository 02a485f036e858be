// SPDX-License-Identifier: Apache-2.0
// Gives a sink its cuts, one after the other, in a thread of its own: a sink that is slow or down
// holds up no other.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "agent/sink.h"
#include "agent/spool.h"

namespace pkprof {

class Delivery {
 public:
  struct Options {
    std::string sink;  // its name
    std::string host;
    std::map<std::string, std::string> labels;
    // Before the first time that something is tried again; twice as long before each further one,
    // up to the most, and up to a half more or less, so that not all agents come back at once.
    std::chrono::milliseconds first_pause{1000};
    std::chrono::milliseconds longest_pause{300'000};
  };
  // The spool outlives it. Errors are told as they begin and end, not each time.
  Delivery(Options options, std::unique_ptr<Sink> sink, Spool& spool,
           std::function<void(const std::string& sentence)> tell);
  ~Delivery();

  // There is something new in the spool.
  void wake();
  // Waits until nothing is left in the spool, or `until`. False: something is.
  bool empty_by(std::chrono::steady_clock::time_point until);

  struct Figures {
    uint64_t sent = 0;
    uint64_t errors = 0;          // tries that failed
    uint64_t last_sent_unix = 0;  // seconds; 0: never
    bool failing = false;
  };
  [[nodiscard]] Figures figures() const;
  [[nodiscard]] const std::string& sink() const { return options_.sink; }

 private:
  void run(const std::stop_token& stop);
  bool send_oldest();  // false: it failed
  void rest(const std::stop_token& stop);

  const Options options_;
  const std::unique_ptr<Sink> sink_;
  Spool& spool_;
  const std::function<void(const std::string& sentence)> tell_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Figures figures_;
  uint64_t woken_ = 0;
  std::chrono::milliseconds pause_{0};
  std::jthread thread_;  // last: it uses all of the rest
};

}  // namespace pkprof
