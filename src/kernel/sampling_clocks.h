// SPDX-License-Identifier: Apache-2.0
// The sampling clocks, one a CPU.
//
// With a CPU its clock goes: the kernel takes perf's events off a CPU that goes offline, and the
// one that is there when it comes back is as good as closed (it can be read and enabled, and does
// not tick). A hook tells of it (bpf/sampler/online.bpf.c): it costs nothing while nothing of the
// kind happens, is exact, and misses no suspend, during which we do not run either. Then, a second
// later at the most, the clock is opened anew.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "kernel/online_cpus.h"
#include "kernel/recorded_time.h"
#include "probe/link.h"

struct pk_cpu;

namespace pkprof {

class KernelObject;

// While counting is off, the recording's clock goes on, or stands still.
enum class WhileOff : bool { clock_goes_on, clock_stands_still };

class SamplingClocks {
 public:
  explicit SamplingClocks(KernelObject& object) : object_(object) {}

  // On each CPU that is online; none ticks yet.
  Result<> open();
  Result<> start();
  // Nothing counts from this moment on, by the recording's clock.
  uint64_t stop(WhileOff clock);
  // Opens those of CPUs that have come back, or come for the first time, also while they are
  // stopped; says which.
  std::vector<uint32_t> open_returned();

  // The recording's clock, ns: CLOCK_MONOTONIC while it never stood still.
  [[nodiscard]] uint64_t now() const;
  [[nodiscard]] uint64_t at(uint64_t moment) const { return time_.at(moment); }
  [[nodiscard]] bool enabled() const;
  // For how long they were started up to then, CLOCK_MONOTONIC, ns.
  [[nodiscard]] uint64_t watched_ns(uint64_t now) const;
  // When counting began or was reset, and when it ended for good (0: it did not).
  [[nodiscard]] uint64_t started() const;
  [[nodiscard]] uint64_t ended() const;
  void begin_anew(uint64_t now);
  void end();

  // The CPUs that have one.
  [[nodiscard]] const std::vector<uint32_t>& sampled() const { return sampled_; }
  // That were sampled; but for those that were away all the time from then on.
  [[nodiscard]] uint32_t cpus(uint64_t from) const;
  // What there is to say of CPUs that were away in this time, a part of the recording, for
  // Meta::degraded.
  [[nodiscard]] std::vector<std::string> absences(uint64_t from, uint64_t until) const;
  // Time up to then of CPUs whose clock has stopped for idleness; and what there was of it before
  // they were stopped, once.
  [[nodiscard]] uint64_t idle_tail(uint64_t until) const;
  uint64_t take_idle_before();

  // For a recording that goes on without us.
  [[nodiscard]] std::vector<bpf_link*> links() const;
  void use_pinned(std::vector<uint32_t> sampled);

 private:
  Result<bool> open_on(uint32_t cpu);
  [[nodiscard]] bool is_sampled(uint32_t cpu) const;
  [[nodiscard]] size_t index_of(uint32_t cpu) const;
  [[nodiscard]] uint64_t idle_tail_of(uint32_t cpu, uint64_t until) const;
  static void begin_anew_on(pk_cpu& cpu, uint64_t now);

  KernelObject& object_;
  RecordedTime time_;
  uint64_t started_ = UINT64_MAX;   // last; this: they are stopped
  uint64_t watched_before_ns_ = 0;  // before they were started last
  std::vector<uint32_t> sampled_;   // CPUs, and by the same index
  std::vector<Fd> clocks_;
  std::vector<Link> links_;
  std::vector<CpuAbsence> absences_;  // that are over
  uint64_t idle_before_ns_ = 0;       // before these, or the last stop, of CPUs that were idle then
  const double rhythm_ = static_cast<double>(std::random_device{}()) / 4294967296.0;
};

}  // namespace pkprof
