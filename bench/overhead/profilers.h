// SPDX-License-Identifier: Apache-2.0
// What the workloads run under: nothing, pkprof in three ways, and others at the same frequency.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "log.h"
#include "stage.h"
#include "switch.h"

namespace pkprof::overhead {

// What a profiler has on each CPU once it samples: an event of perf's, which may be there long
// before if it is for something else, or a link of its program to one.
enum class Clock : uint8_t { event, link };

struct Variant {
  VariantInfo info;    // "HZ" and "FILE" in the command are filled in
  std::string needs;   // a program of the system, or "" for one of ours
  std::string result;  // name of the file that it writes, or ""
  Clock clock = Clock::event;
  bool controlled = false;  // it has more in the kernel than events, and --control to take it out
  // The kernel looks up the name of each file that is mapped for its sake, also while it is off.
  bool hears_of_maps = false;

  [[nodiscard]] testnet::Argv argv(const Stage& stage, int hz) const;
};

[[nodiscard]] std::vector<Variant> all_variants();

// A profiler at work. Gone with the object, and what it has written with it.
class Profiler {
 public:
  // Starts it, waits until it has a clock on every CPU, and for so many seconds more: some start
  // with a rush.
  [[nodiscard]] static Result<Profiler> start(const Variant& variant, const Stage& stage, int hz,
                                              double settle);
  Profiler(Profiler&&) = default;
  Profiler& operator=(Profiler&&) = delete;
  ~Profiler();

  // While it is off nothing of it is at work in the kernel, and its process sleeps.
  [[nodiscard]] Result<> turn(bool on);
  // An error if it has ended, with what it said.
  [[nodiscard]] Result<> check();
  // Ends it as Ctrl-C does, and waits. An error if it was not well.
  [[nodiscard]] Result<> stop();

 private:
  Profiler(testnet::Child child, std::string result, std::string errors)
      : child_(std::move(child)), result_(std::move(result)), errors_(std::move(errors)) {}
  [[nodiscard]] std::string complaint() const;

  testnet::Child child_;
  std::optional<ControlFifos> control_;
  std::optional<PerfEvents> events_;  // once it was turned off,
  uint64_t counted_ = 0;              // and what they had counted when it was last turned on or off
  std::string result_;                // file that it writes
  std::string errors_;                // file that has its standard error
};

}  // namespace pkprof::overhead
