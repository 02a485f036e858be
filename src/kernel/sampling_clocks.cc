// SPDX-License-Identifier: Apache-2.0
#include "kernel/sampling_clocks.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "kernel/object/kernel_object.h"
#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

// Ns between samples on a CPU. Each CPU has a period of its own, within a percent of what was asked
// for: clocks that tick together would sample one CPU always while the others are at their samples,
// which is when they send it nothing. So have two recordings at once, by `own` (0 to 1): one that
// ticks right behind the other sees what had to wait for that one's sample.
uint64_t period_of(uint32_t cpu, uint64_t hz, double own) {
  constexpr double golden = 0.6180339887498949;  // multiples of it fall evenly, for any number
  const double turns = own + cpu * golden;
  const double part = turns - std::floor(turns);
  return static_cast<uint64_t>(1e9 / static_cast<double>(hz) * (0.99 + 0.02 * part));
}

Fd open_sampler(uint32_t cpu, uint64_t hz, double own) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period_of(cpu, hz, own);
  attr.disabled = 1;
  return Fd(static_cast<int>(
      syscall(SYS_perf_event_open, &attr, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC)));
}

// The kernel side counts this one up at any time.
uint32_t times_gone(pk_cpu& cpu) {
  return std::atomic_ref(cpu.clock.gone).load();
}

}  // namespace

bool SamplingClocks::is_sampled(uint32_t cpu) const {
  return std::ranges::find(sampled_, cpu) != sampled_.end();
}

size_t SamplingClocks::index_of(uint32_t cpu) const {
  return static_cast<size_t>(std::ranges::find(sampled_, cpu) - sampled_.begin());
}

// Not running yet. False for a CPU that is not online.
Result<bool> SamplingClocks::open_on(uint32_t cpu) {
  Fd fd = open_sampler(cpu, object_.options.frequency_hz, rhythm_);
  if (!fd.valid() && errno == ENODEV) return false;
  if (!fd.valid())
    return fail(
        LibbpfLog().explain("opening the sampling clock of CPU " + std::to_string(cpu), errno));
  LibbpfLog log;
  Link link(bpf_program__attach_perf_event(object_.skeleton->progs.pk_sample, fd.get()));
  if (!link) return fail(log.explain("attaching the sampler", errno));
  Fd clock(dup(fd.get()));  // the link owns the other one
  (void)fd.release();
  ioctl(clock.get(), PERF_EVENT_IOC_DISABLE, 0);  // attaching enables it
  if (!is_sampled(cpu)) {
    sampled_.push_back(cpu);
    clocks_.emplace_back();
    links_.emplace_back();
  }
  clocks_[index_of(cpu)] = std::move(clock);
  links_[index_of(cpu)] = std::move(link);
  return true;
}

// A CPU is away unless its clock was opened since it went last, and has come back when the kernel
// says so. (Between the two the kernel opens clocks for it that never tick.)
Result<> SamplingClocks::open() {
  for (uint32_t cpu = 0; cpu < object_.cpus; ++cpu) {
    pk_cpu& c = object_.per_cpu()[cpu];
    const uint32_t gone = times_gone(c);
    c.clock.opened = c.clock.came = gone - 1;
    const auto opened = open_on(cpu);
    if (!opened) return std::unexpected(opened.error());
    if (*opened) c.clock.opened = c.clock.came = gone;
  }
  return {};
}

// As the kernel side has the CPU: what was to be taken off its next sample, or turn, is off none.
// While nothing of it is counted, so it may be at work meanwhile.
void SamplingClocks::begin_anew_on(pk_cpu& cpu, uint64_t now) {
  cpu.sampler.last_ns = now;
  cpu.sampler.steal = 0;
  cpu.irq.ns = 0;
  cpu.sampler.carried_ns = 0;
  cpu.sampler.idle_time = 0;
  cpu.sampler.gap_ns = 0;
  cpu.measure.run_since = now;
  cpu.measure.run_off = cpu.irq.sum + cpu.measure.softirq_sum;
  cpu.sampler.idle = 0;
}

Result<> SamplingClocks::start() {
  const uint64_t now = monotonic_ns();
  const auto& bss = *object_.skeleton->bss;
  for (pk_cpu& cpu : object_.per_cpu()) {
    begin_anew_on(cpu, now);
    cpu.sampler.window = bss.window;  // what hooks said since they were attached holds
    cpu.sampler.resting = bss.resting;
  }
  time_.go_on(now);
  begin_anew(now);
  object_.run_everywhere(object_.skeleton->progs.pk_find_idle);
  for (const Fd& fd : clocks_)
    if (ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0)) return fail_errno("starting the samplers");
  return {};
}

void SamplingClocks::begin_anew(uint64_t now) {
  object_.skeleton->bss->started = started_ = now;
}

uint64_t SamplingClocks::now() const {
  return time_.at(monotonic_ns());
}

bool SamplingClocks::enabled() const {
  return object_.skeleton->bss->started != 0;
}

std::vector<uint32_t> SamplingClocks::open_returned() {
  std::vector<uint32_t> returned;
  for (uint32_t cpu = 0; cpu < object_.cpus; ++cpu) {
    pk_cpu& c = object_.per_cpu()[cpu];
    const uint32_t gone = times_gone(c);
    if (gone == c.clock.opened || gone != c.clock.came) continue;
    uint64_t idle_ns = 0;
    if (enabled() && is_sampled(cpu))
      idle_ns = idle_tail_of(cpu, std::max<uint64_t>(c.clock.gone_since, started_));
    // One that cannot be opened now is tried again.
    if (const auto opened = open_on(cpu); !opened || !*opened) continue;
    const uint64_t now = monotonic_ns();
    begin_anew_on(c, now);
    std::atomic_ref(c.clock.opened).store(gone);
    // In a pause it is started with the others.
    if (enabled()) ioctl(clocks_[index_of(cpu)].get(), PERF_EVENT_IOC_ENABLE, 0);
    idle_before_ns_ += idle_ns;
    absences_.push_back({.cpu = cpu,
                         .from = time_.at(c.clock.gone_since),
                         .until = time_.at(now),
                         .end = CpuAbsence::End::sampled});
    returned.push_back(cpu);
  }
  return returned;
}

std::vector<std::string> SamplingClocks::absences(uint64_t from, uint64_t until) const {
  std::vector<CpuAbsence> all = absences_;
  for (uint32_t cpu = 0; cpu < object_.cpus; ++cpu) {
    pk_cpu& c = object_.per_cpu()[cpu];
    if (times_gone(c) == c.clock.opened) continue;
    if (is_sampled(cpu))
      all.push_back({.cpu = cpu, .from = time_.at(c.clock.gone_since)});
    else if (c.clock.came != c.clock.opened)
      all.push_back({.cpu = cpu, .end = CpuAbsence::End::unopened});
  }
  return describe(all, from, until);
}

uint32_t SamplingClocks::cpus(uint64_t from) const {
  return static_cast<uint32_t>(std::ranges::count_if(sampled_, [&](uint32_t cpu) {
    pk_cpu& c = object_.per_cpu()[cpu];
    return times_gone(c) == c.clock.opened || time_.at(c.clock.gone_since) > from;
  }));
}

uint64_t SamplingClocks::watched_ns(uint64_t now) const {
  return watched_before_ns_ + (now > started_ ? now - started_ : 0);
}

// Stopping the clocks waits for each CPU in turn, and one that the host does not run keeps it
// waiting: so nothing counts from one moment on, and the clocks stop after it.
uint64_t SamplingClocks::stop(WhileOff clock) {
  const uint64_t stopped = monotonic_ns();
  if (enabled()) {
    object_.skeleton->bss->started = 0;
    for (const Fd& fd : clocks_) ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
    idle_before_ns_ += idle_tail(stopped);
    watched_before_ns_ = watched_ns(stopped);
    started_ = UINT64_MAX;
  }
  if (clock == WhileOff::clock_stands_still) time_.pause(stopped);
  return time_.at(stopped);
}

uint64_t SamplingClocks::started() const {
  return object_.skeleton->bss->started;
}

uint64_t SamplingClocks::ended() const {
  return object_.skeleton->bss->stopped;
}

void SamplingClocks::end() {
  if (ended()) return;
  object_.find_idle_cpus();
  object_.skeleton->bss->stopped = monotonic_ns();
}

// Of a CPU that has gone offline, up to then.
uint64_t SamplingClocks::idle_tail_of(uint32_t cpu, uint64_t until) const {
  constexpr uint64_t gap = 10'000'000;  // as PK_GAP_NS of the sampler: a busy CPU has ticks
  const pk_cpu& c = object_.per_cpu()[cpu];
  const uint64_t last = std::max<uint64_t>(c.sampler.last_ns, started_);
  const uint64_t end =
      c.clock.gone == c.clock.opened ? until : std::min<uint64_t>(until, c.clock.gone_since);
  const uint64_t tail = end > last ? end - last : 0;
  const bool was_idle = tail > 2 * object_.skeleton->bss->period && (tail > gap || c.sampler.idle);
  // Below zero while an interrupt goes on, of which a part is off the last sample already.
  const auto counted = static_cast<int64_t>(c.irq.ns);
  if (!was_idle) return 0;
  return tail - std::min(tail, static_cast<uint64_t>(std::max<int64_t>(counted, 0)));
}

uint64_t SamplingClocks::idle_tail(uint64_t until) const {
  uint64_t idle = 0;
  for (const uint32_t cpu : sampled_) idle += idle_tail_of(cpu, until);
  return idle;
}

uint64_t SamplingClocks::take_idle_before() {
  return std::exchange(idle_before_ns_, 0);
}

std::vector<bpf_link*> SamplingClocks::links() const {
  std::vector<bpf_link*> all;
  all.reserve(links_.size());
  for (const Link& link : links_) all.push_back(link.get());
  return all;
}

void SamplingClocks::use_pinned(std::vector<uint32_t> sampled) {
  sampled_ = std::move(sampled);
  started_ = started();
}

}  // namespace pkprof
