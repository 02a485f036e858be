// SPDX-License-Identifier: Apache-2.0
// What this kernel has, found out by looking into its BTF rather than by its version.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct btf;

namespace pkprof {

class KernelFacts {
 public:
  // Reads the running kernel's BTF. Fails, with what it costs, where there is none.
  static Result<KernelFacts> read();

  // Number of arguments of a tracepoint (as a BTF-typed program sees it), -1 if it is missing.
  [[nodiscard]] int tracepoint_args(std::string_view name) const;
  [[nodiscard]] bool has_function(std::string_view name) const;
  // Offset of a variable in the per-CPU area, 0 when it is not there.
  [[nodiscard]] uint64_t percpu_offset(std::string_view name) const;

 private:
  struct Free {
    void operator()(btf* b) const;
  };
  std::unique_ptr<btf, Free> btf_;
};

// uname -r.
[[nodiscard]] std::string kernel_release();
[[nodiscard]] std::string host_name();

}  // namespace pkprof
