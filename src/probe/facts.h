// SPDX-License-Identifier: Apache-2.0
// What this kernel has, found out by looking into its BTF rather than by its version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

struct btf;

namespace pkprof {

class KernelFacts {
 public:
  // Reads the running kernel's BTF. Fails, with what it costs, where there is none.
  static Result<KernelFacts> read();

  [[nodiscard]] const btf* types() const { return btf_.get(); }
  // Number of arguments of a tracepoint (as a BTF-typed program sees it), -1 if it is missing.
  [[nodiscard]] int tracepoint_args(std::string_view name) const;
  [[nodiscard]] bool has_function(std::string_view name) const;
  // What a program of the section "tp_btf/NAME" or "iter/NAME" is loaded for; 0: it is not there.
  [[nodiscard]] uint32_t attach_id(std::string_view section) const;
  // Offset in the per-CPU area of a variable, or of a member of it; 0 when it is not there.
  [[nodiscard]] uint64_t percpu_offset(std::string_view name, std::string_view member = {}) const;
  // Where preempt_count is in the per-CPU area: a variable of its own, or, from 6.2 to 6.14, a
  // member of pcpu_hot. 0 when it is elsewhere.
  [[nodiscard]] uint64_t preempt_count_offset() const;
  // The same of the word of softirqs that are to be run.
  [[nodiscard]] uint64_t softirq_pending_offset() const;

 private:
  struct Free {
    void operator()(btf* b) const;
  };
  std::unique_ptr<btf, Free> btf_;
  // What describes a tracepoint, by its name; names are the BTF's.
  std::unordered_map<std::string_view, uint32_t> tracepoints_;
  uint32_t percpu_ = 0;  // the section of per-CPU variables, 0 for none
};

// uname -r.
[[nodiscard]] std::string kernel_release();
[[nodiscard]] std::string host_name();

}  // namespace pkprof
