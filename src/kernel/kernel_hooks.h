// SPDX-License-Identifier: Apache-2.0
// The hooks: programs on tracepoints and functions of the kernel, that note who is served.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "probe/capability.h"
#include "probe/hooks.h"
#include "probe/link.h"

namespace pkprof {

class KernelObject;

class KernelHooks {
 public:
  explicit KernelHooks(KernelObject& object) : object_(object) {}

  // Measured on this machine in a few milliseconds: a program that does nothing, on a tracepoint
  // that nobody meets but who renames a task, as we do. The same of interrupts, whose time begins
  // and ends by it from here on.
  [[nodiscard]] HookOverhead measure_overhead();
  Result<> attach();
  // All but the lasting ones.
  void detach();
  // Returns how many could not be attached again.
  size_t attach_again();

  // Of the hooks, enum pk_rest: those that may rest here, and those that do.
  [[nodiscard]] uint32_t may_rest(uint32_t which) const;
  [[nodiscard]] uint32_t resting() const;
  // Those that may of these are to rest from now on, and no others: the sampler does without them.
  // Returns how many of the others could not be attached again.
  size_t rest(uint32_t which);

  // What works on this kernel, and by what means.
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
  void note(Capability capability) { capabilities_.push_back(std::move(capability)); }
  // For the cost meter: the programs, and how often hooks have run, by CPU.
  [[nodiscard]] std::vector<int> programs(HookGroup group) const;
  [[nodiscard]] std::vector<uint64_t> runs(HookGroup group) const;

  // For a recording that goes on without us.
  [[nodiscard]] std::vector<bpf_link*> links() const;
  void use_pinned(HookGroup group, std::vector<Fd> programs);

 private:
  struct Attached {
    const Hook* hook;
    int program;
    Link link;
  };
  Link attach(const Hook& hook);
  [[nodiscard]] bool is_asked_for(const Need& need) const;
  [[nodiscard]] bool is_attached(std::string_view program) const;

  KernelObject& object_;
  std::vector<Attached> attached_;
  Link empty_;            // of what hooks were measured with, until they are attached
  uint32_t windows_ = 0;  // times that hooks were turned on
  std::array<std::vector<Fd>, hook_groups> pinned_;
  Capabilities capabilities_;
};

}  // namespace pkprof
