// SPDX-License-Identifier: Apache-2.0
// Traces of calls: which functions they are of, and the programs that note these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "calls/call_targets.h"
#include "probe/facts.h"
#include "symbol/symbolizer.h"

struct debox_bpf;

namespace pkprof {

// Which functions a call's trace is of.
struct DeboxTraced {
  std::vector<CallTarget> functions;
  // By entries and exits of all at once, or one by one; or by samples.
  enum class How { at_once, one_by_one, samples } how = How::samples;
};

// The functions that match these patterns, by the best means that this kernel has. `degraded` is
// told where that is no more than samples. Takes the kernel's symbols.
[[nodiscard]] Result<DeboxTraced> choose_traced(const KernelFacts& facts,
                                                const KernelSymbols* symbols,
                                                std::span<const std::string> patterns,
                                                std::vector<std::string>& degraded);

class DeboxTrace {
 public:
  static constexpr uint32_t sample_ns = 100'000;  // of CPU time, from one sample to the next

  // Of no functions, there are no traces.
  explicit DeboxTrace(std::optional<DeboxTraced> traced) : traced_(std::move(traced)) {}

  [[nodiscard]] bool wanted() const { return traced_.has_value(); }
  [[nodiscard]] bool sampled() const { return is(DeboxTraced::How::samples); }

  // Before the object is loaded: room for what traces take, and only programs that this kernel can
  // have. Samples take the kernel's symbols.
  void prepare(debox_bpf& object, const KernelSymbols* symbols) const;
  // When it is: samples are told which functions are wanted.
  Result<> tell(const debox_bpf& object, const KernelSymbols* symbols) const;
  // Where they are not samples. Returns the names of functions that cannot be attached to.
  std::vector<std::string> attach(const debox_bpf& object, const KernelFacts& facts);
  void detach() { links_.clear(); }

  // Of one function each.
  [[nodiscard]] const std::vector<Fd>& programs() const { return programs_; }

 private:
  using Names = std::vector<std::string>;
  [[nodiscard]] bool is(DeboxTraced::How how) const { return traced_ && traced_->how == how; }
  void attach_at_once(const debox_bpf& object, std::vector<const CallTarget*> targets,
                      Names& refused);
  void attach_one_by_one(const debox_bpf& object, const KernelFacts& facts,
                         const std::vector<const CallTarget*>& targets, Names& refused);

  std::optional<DeboxTraced> traced_;
  std::vector<Fd> links_;
  std::vector<Fd> programs_;
};

}  // namespace pkprof
