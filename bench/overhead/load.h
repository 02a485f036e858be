// SPDX-License-Identifier: Apache-2.0
// A workload at work: its processes, and a meter that says how much they have got done so far.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "testnet.h"

namespace pkprof::overhead {

// What a program of ours counts while it runs, in memory that it shares with us.
class Progress {
 public:
  [[nodiscard]] static Result<Progress> create();
  // For the environment of the program.
  [[nodiscard]] std::string setting() const;
  // All of its worker processes together.
  [[nodiscard]] Result<double> operations() const;
  [[nodiscard]] Result<double> bytes() const;

 private:
  explicit Progress(Fd memory) : memory_(std::move(memory)) {}
  template <typename Member>
  [[nodiscard]] Result<double> sum(Member member) const;

  Fd memory_;
};

// Bytes that the network device of that name has received where process `pid` is.
[[nodiscard]] Result<double> received_bytes(pid_t pid, const std::string& device);

class Load {
 public:
  using Meter = std::function<Result<double>()>;

  // The processes are ended from the first to the last: clients stand before their servers.
  Load(std::vector<testnet::Child> processes, Meter meter)
      : processes_(std::move(processes)), meter_(std::move(meter)) {}

  // What gets done in so many seconds from now, per second. An error if a process has ended, or if
  // nothing gets done. Ends early when `stop` is set.
  [[nodiscard]] Result<double> measure(double seconds, const std::atomic<bool>& stop);

  // It goes on for so long, and nobody looks.
  static void pass(double seconds, const std::atomic<bool>& stop);

 private:
  [[nodiscard]] Result<> check();

  std::vector<testnet::Child> processes_;
  Meter meter_;
};

}  // namespace pkprof::overhead
