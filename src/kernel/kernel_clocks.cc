// SPDX-License-Identifier: Apache-2.0
// KernelSide: the sampling clocks, one a CPU.
//
// With a CPU its clock goes: the kernel takes perf's events off a CPU that goes offline, and the
// one that is there when it comes back is as good as closed (it can be read and enabled, and does
// not tick). A hook tells of it (bpf/sampler/online.bpf.c): it costs nothing while nothing of the
// kind happens, is exact, and misses no suspend, during which we do not run either. Then, a second
// later at the most, the clock is opened anew.
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/clock.h"
#include "kernel/kernel_side_impl.h"
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
  return std::atomic_ref(cpu.gone).load();
}

}  // namespace

bool KernelSide::Impl::is_sampled(uint32_t cpu) const {
  return std::ranges::find(sampled, cpu) != sampled.end();
}

// Not running yet. False for a CPU that is not online.
Result<bool> KernelSide::Impl::open_clock(uint32_t cpu) {
  Fd fd = open_sampler(cpu, options.frequency_hz, own_rhythm);
  if (!fd.valid() && errno == ENODEV) return false;
  if (!fd.valid())
    return fail(
        LibbpfLog().explain("opening the sampling clock of CPU " + std::to_string(cpu), errno));
  LibbpfLog log;
  Link link(bpf_program__attach_perf_event(skeleton->progs.pk_sample, fd.get()));
  if (!link) return fail(log.explain("attaching the sampler", errno));
  Fd clock(dup(fd.get()));  // the link owns the other one
  (void)fd.release();
  ioctl(clock.get(), PERF_EVENT_IOC_DISABLE, 0);  // attaching enables it
  const auto at = std::ranges::find(sampled, cpu) - sampled.begin();
  if (!is_sampled(cpu)) {
    sampled.push_back(cpu);
    samplers.emplace_back();
    links.emplace_back();
  }
  samplers[static_cast<size_t>(at)] = std::move(clock);
  links[static_cast<size_t>(at)] = std::move(link);
  return true;
}

// A CPU is away unless its clock was opened since it went last, and has come back when the kernel
// says so. (Between the two the kernel opens clocks for it that never tick.)
Result<> KernelSide::Impl::open_clocks() {
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    pk_cpu& c = per_cpu()[cpu];
    const uint32_t gone = times_gone(c);
    c.opened = c.came = gone - 1;
    const auto opened = open_clock(cpu);
    if (!opened) return std::unexpected(opened.error());
    if (*opened) c.opened = c.came = gone;
  }
  return {};
}

// As the kernel side has the CPU: what was to be taken off its next sample, or turn, is off none.
// While nothing of it is counted, so it may be at work meanwhile.
void KernelSide::Impl::begin_anew(pk_cpu& cpu, uint64_t now) {
  cpu.last_ns = now;
  cpu.steal = 0;
  cpu.irq_ns = 0;
  cpu.carried_ns = 0;
  cpu.idle_time = 0;
  cpu.gap_ns = 0;
  cpu.run_since = now;
  cpu.run_off = cpu.irq_sum + cpu.softirq_sum;
  cpu.idle = 0;
}

Result<> KernelSide::enable() {
  Impl& m = *impl_;
  const uint64_t now = monotonic_ns();
  const auto& bss = *m.skeleton->bss;
  for (pk_cpu& cpu : m.per_cpu()) {
    Impl::begin_anew(cpu, now);
    cpu.window = bss.window;  // what hooks said since they were attached holds
    cpu.resting = bss.resting;
  }
  m.time.go_on(now);
  m.started = now;
  m.skeleton->bss->started = now;
  m.run_everywhere(m.skeleton->progs.pk_look);
  for (const Fd& fd : m.samplers)
    if (ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0)) return fail_errno("starting the samplers");
  return {};
}

uint64_t KernelSide::now() const {
  return impl_->time.at(monotonic_ns());
}

bool KernelSide::enabled() const {
  return impl_->skeleton->bss->started != 0;
}

std::vector<uint32_t> KernelSide::sample_returned() {
  Impl& m = *impl_;
  std::vector<uint32_t> returned;
  for (uint32_t cpu = 0; cpu < m.cpus; ++cpu) {
    pk_cpu& c = m.per_cpu()[cpu];
    const uint32_t gone = times_gone(c);
    if (gone == c.opened || gone != c.came) continue;
    uint64_t idle_ns = 0;
    if (enabled() && m.is_sampled(cpu))
      idle_ns = m.idle_tail_of(cpu, std::max<uint64_t>(c.gone_since, m.started));
    // One that cannot be opened now is tried again.
    if (const auto opened = m.open_clock(cpu); !opened || !*opened) continue;
    const uint64_t now = monotonic_ns();
    Impl::begin_anew(c, now);
    std::atomic_ref(c.opened).store(gone);
    const auto at = std::ranges::find(m.sampled, cpu) - m.sampled.begin();
    // In a pause it is started with the others.
    if (enabled()) ioctl(m.samplers[static_cast<size_t>(at)].get(), PERF_EVENT_IOC_ENABLE, 0);
    m.idle_before_ns += idle_ns;
    m.absences.push_back({.cpu = cpu,
                          .from = m.time.at(c.gone_since),
                          .until = m.time.at(now),
                          .end = CpuAbsence::End::sampled});
    returned.push_back(cpu);
  }
  return returned;
}

std::vector<std::string> KernelSide::absences(uint64_t from, uint64_t until) const {
  const Impl& m = *impl_;
  std::vector<CpuAbsence> all = m.absences;
  for (uint32_t cpu = 0; cpu < m.cpus; ++cpu) {
    pk_cpu& c = m.per_cpu()[cpu];
    if (times_gone(c) == c.opened) continue;
    if (m.is_sampled(cpu))
      all.push_back({.cpu = cpu, .from = m.time.at(c.gone_since)});
    else if (c.came != c.opened)
      all.push_back({.cpu = cpu, .end = CpuAbsence::End::left_out});
  }
  return describe(all, from, until);
}

uint32_t KernelSide::cpus(uint64_t from) const {
  return static_cast<uint32_t>(std::ranges::count_if(impl_->sampled, [&](uint32_t cpu) {
    pk_cpu& c = impl_->per_cpu()[cpu];
    return times_gone(c) == c.opened || impl_->time.at(c.gone_since) > from;
  }));
}

uint64_t KernelSide::watched_ns(uint64_t now) const {
  const Impl& m = *impl_;
  return m.watched_before_ns + (now > m.started ? now - m.started : 0);
}

// Stopping the clocks waits for each CPU in turn, and one that the host does not run keeps it
// waiting: so nothing counts from one moment on, and the clocks stop after it.
uint64_t KernelSide::disable(Time time) {
  Impl& m = *impl_;
  if (!enabled()) {
    if (time == Time::stands_still) m.time.pause(monotonic_ns());
    return now();
  }
  count_calls(false);
  m.look_at_cpus();
  measure_now();
  const uint64_t stopped = monotonic_ns();
  m.skeleton->bss->started = 0;
  for (const Fd& fd : m.samplers) ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  m.idle_before_ns += m.idle_tail(stopped);
  m.watched_before_ns = watched_ns(stopped);
  m.started = UINT64_MAX;
  if (time == Time::stands_still) m.time.pause(stopped);
  return m.time.at(stopped);
}

}  // namespace pkprof
