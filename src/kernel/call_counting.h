// SPDX-License-Identifier: Apache-2.0
// Counting calls of the kernel's functions, by whom they are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "calls/call_targets.h"
#include "kernel/counted.h"
#include "pkprof/cpu.h"
#include "probe/facts.h"
#include "probe/mapped_table.h"

struct bpf_program;

namespace pkprof {

class KernelObject;

class CallCounting {
 public:
  explicit CallCounting(KernelObject& object) : object_(object) {}

  Result<> map();  // its tables, once the object is loaded
  // Attaches programs to these functions, by what the options allow; takes some ten milliseconds
  // for each function, or for all of many. Nothing is counted before count(true).
  struct Attached {
    size_t functions = 0;
    std::string how;                   // "fentry"
    std::vector<std::string> refused;  // functions that cannot be counted here
  };
  Attached attach(const KernelFacts& facts, std::span<const CallTarget> targets);
  void count(bool on);
  void detach();
  [[nodiscard]] std::vector<int> programs() const;
  // Calls that were not counted because they came while a program that counts was at work on the
  // same CPU.
  [[nodiscard]] uint64_t missed() const;
  // Adds what CPUs keep and, when counting is over, what waits for a hook that will not come any
  // more.
  void take(Tables& out);

 private:
  bool attach_to(const KernelFacts& facts, const CallTarget& target);
  size_t attach_to_many(bpf_program* program, std::span<const CallTarget* const> targets,
                        std::vector<std::string>& left_out, int& tries);

  KernelObject& object_;
  std::vector<Fd> programs_;
  std::vector<Fd> links_;
  uint64_t missed_before_ = 0;  // before counting began
  MappedTable<pk_call> calls_;  // what CPUs keep
  MappedTable<pk_waiting_calls> waiting_;
};

}  // namespace pkprof
