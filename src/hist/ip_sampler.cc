// SPDX-License-Identifier: Apache-2.0
// One event a CPU, since the kernel gives no ring to one that threads inherit and that follows them
// everywhere. An hrtimer stands behind each: it is stopped with what is left of its period when the
// process leaves the CPU, so time blocked is never counted.
//
// A tick in the kernel comes with the user's registers as they were when the kernel was entered.
// SYSCALL leaves the address that it returns to in RCX, where nothing else has it: so a system call
// is told from a fault or an interrupt, whose address is that of the instruction itself.
//
// On its way in and out the kernel has interrupts off. A tick that falls there is taken at the
// first instruction after the system call, which has not been executed, since RCX still has its
// address: it is the system call's, too. Of a short one that is a half of its time.
#include "hist/ip_sampler.h"

#include <asm/perf_regs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/clock.h"
#include "probe/seccomp.h"

namespace pkprof {
namespace {

constexpr uint64_t timer_limit_hz = 100'000;  // cpu-clock's timer has no shorter period than 10 us

struct Sample {
  perf_event_header header;
  uint64_t ip;
  uint32_t pid, tid;
  uint64_t time;
  uint64_t abi;  // 0: no registers follow
};
struct Registers {
  uint64_t cx, user_ip;  // in the order of their numbers
};

long sysctl(const char* name, long otherwise) {
  long value = otherwise;
  std::ifstream in(std::string("/proc/sys/kernel/") + name);
  return in >> value ? value : otherwise;
}

bool parse_sample(const std::string& record, IpEvent& event) {
  Sample s{};
  if (!head_of(record, s) || s.header.type != PERF_RECORD_SAMPLE) return false;
  event.is_sample = true;
  event.time = s.time;
  IpSample& to = event.sample;
  to.pid = s.pid;
  to.in_kernel = (s.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
  to.has_ip = !to.in_kernel;
  to.ip = s.ip;
  Registers r{};
  if (s.abi == PERF_SAMPLE_REGS_ABI_NONE || record.size() < sizeof(s) + sizeof(r)) return true;
  __builtin_memcpy(&r, record.data() + sizeof(s), sizeof(r));
  to.has_ip = true;
  to.ip = r.user_ip;
  to.in_system_call = r.cx == r.user_ip;
  to.in_kernel = to.in_kernel || to.in_system_call;
  return true;
}

perf_event_attr attributes(const IpSampler::Options& options, bool kernel) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.freq = 1;
  attr.sample_freq = options.frequency_hz;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
  attr.sample_regs_user = 1ULL << PERF_REG_X86_CX | 1ULL << PERF_REG_X86_IP;
  attr.read_format = PERF_FORMAT_LOST;
  attr.exclude_kernel = !kernel;
  attr.exclude_hv = !kernel;
  attr.inherit = 1;
  attr.disabled = options.from_exec;
  attr.enable_on_exec = options.from_exec;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  return attr;
}

// Memory for rings is limited for whoever has no privilege: smaller ones will do.
std::expected<PerfRing, int> open_ring(perf_event_attr attr, pid_t pid, int cpu, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (;; bytes /= 2) {
    attr.wakeup_watermark = static_cast<uint32_t>(bytes / 2);
    auto ring = PerfRing::open(attr, pid, cpu, bytes);
    if (ring || ring.error() != EPERM || bytes <= page) return ring;
  }
}

std::unexpected<Error> refused(int err) {
  const std::string filter = has_seccomp_filter() ? std::string("; ") + seccomp_advice : "";
  if (err == EACCES || err == EPERM)
    return fail("sampling the command: not allowed (kernel.perf_event_paranoid is " +
                std::to_string(sysctl("perf_event_paranoid", 2)) +
                "): be root, have CAP_PERFMON, or set it to 2 or less" + filter);
  return fail(fail_errno("sampling the command", err).error().message + filter);
}

}  // namespace

uint64_t IpSampler::max_frequency_hz() {
  const long limit = sysctl("perf_event_max_sample_rate", timer_limit_hz);
  return std::min(timer_limit_hz, static_cast<uint64_t>(std::max(limit, 1L)));
}

Result<IpSampler> IpSampler::open(pid_t pid, const Options& options) {
  IpSampler sampler;
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  const size_t bytes = Sideband::ring_bytes_for(static_cast<uint32_t>(cpus));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto ring = open_ring(attributes(options, sampler.sees_kernel_), pid, cpu, bytes);
    if (!ring && ring.error() == EACCES && sampler.rings_.empty()) {
      sampler.sees_kernel_ = false;
      ring = open_ring(attributes(options, false), pid, cpu, bytes);
    }
    if (ring)
      sampler.rings_.push_back(std::move(*ring));
    else if (ring.error() != ENODEV)
      return refused(ring.error());
  }
  return sampler;
}

std::vector<IpEvent> IpSampler::take(bool last) {
  const uint64_t now = last ? UINT64_MAX : monotonic_ns();
  std::vector<IpEvent> events = std::move(held_);
  held_.clear();
  for (PerfRing& ring : rings_) {
    ring.take([&](const std::string& record) {
      perf_event_header header{};
      if (head_of(record, header) && header.type == PERF_RECORD_THROTTLE) ++throttled_;
      IpEvent event;
      if (!parse_sample(record, event)) {
        if (!parse_process_event(record, event.process)) return;
        event.time = event.process.time;
      }
      (event.time > now ? held_ : events).push_back(std::move(event));
    });
  }
  std::ranges::stable_sort(events, {}, &IpEvent::time);
  return events;
}

uint64_t IpSampler::lost() const {
  struct {
    uint64_t value, lost;
  } count{};
  uint64_t sum = 0;
  for (const PerfRing& ring : rings_)
    if (read(ring.fd(), &count, sizeof(count)) == sizeof(count)) sum += count.lost;
  return sum;
}

std::vector<int> IpSampler::poll_fds() const {
  std::vector<int> fds;
  fds.reserve(rings_.size());
  for (const PerfRing& ring : rings_) fds.push_back(ring.fd());
  return fds;
}

}  // namespace pkprof
