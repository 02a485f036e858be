// SPDX-License-Identifier: Apache-2.0
#include "process/sideband.h"

#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "process/perf_ring.h"

namespace pkprof {
namespace {

// Nothing for a CPU that is not there.
Result<std::optional<PerfRing>> open_ring(int cpu, size_t bytes, Sideband::Maps maps) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.mmap = maps == Sideband::Maps::yes;
  attr.mmap2 = attr.mmap;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.sample_id_all = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<uint32_t>(bytes / 2);
  auto ring = PerfRing::open(attr, -1, cpu, bytes);
  if (ring) return std::optional(std::move(*ring));
  if (ring.error() == ENODEV) return std::nullopt;
  return fail_errno("following processes on CPU " + std::to_string(cpu), ring.error());
}

// The fixed head of each record; strings follow, and then the sample id (tid, time).
struct Mmap2 {
  perf_event_header header;
  uint32_t pid, tid;
  uint64_t addr, len, pgoff;
  uint32_t maj, min;
  uint64_t ino, ino_generation;
  uint32_t prot, flags;
};
struct Comm {
  perf_event_header header;
  uint32_t pid, tid;
};
struct Task {
  perf_event_header header;
  uint32_t pid, ppid, tid, ptid;
  uint64_t time;
};
struct Lost {
  perf_event_header header;
  uint64_t id, lost;
};
struct SampleId {
  uint32_t pid, tid;
  uint64_t time;
};

// Text between the fixed head and the sample id, up to its NUL.
std::string text_of(const std::string& record, size_t head) {
  if (record.size() < head + sizeof(SampleId)) return "";
  const size_t room = record.size() - head - sizeof(SampleId);
  return std::string(record.data() + head, strnlen(record.data() + head, room));
}

}  // namespace

bool parse_process_event(const std::string& record, ProcessEvent& e) {
  perf_event_header header{};
  SampleId id{};
  if (!head_of(record, header) || record.size() < sizeof(header) + sizeof(id)) return false;
  std::memcpy(&id, record.data() + record.size() - sizeof(id), sizeof(id));
  e.time = id.time;
  if (Mmap2 m{}; header.type == PERF_RECORD_MMAP2 && head_of(record, m)) {
    e.kind = ProcessEvent::Kind::map;
    e.pid = m.pid;  // 0 outside our PID namespace, as in those below
    e.map = {m.addr, m.addr + m.len, m.pgoff, m.ino, m.maj, m.min, text_of(record, sizeof(m)), ""};
    return e.pid != 0;
  }
  if (Comm c{}; header.type == PERF_RECORD_COMM && head_of(record, c)) {
    if (!(header.misc & PERF_RECORD_MISC_COMM_EXEC)) return false;
    e.kind = ProcessEvent::Kind::exec;
    e.pid = c.pid;
    e.comm = text_of(record, sizeof(c));
    return e.pid != 0;
  }
  if (Task t{};
      (header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT) && head_of(record, t)) {
    if (t.pid != t.tid) return false;  // a thread
    e.kind = header.type == PERF_RECORD_FORK ? ProcessEvent::Kind::fork : ProcessEvent::Kind::exit;
    e.pid = t.pid;
    e.parent = t.ppid;
    e.time = t.time;
    return e.pid != 0;
  }
  return false;
}

uint64_t lost_in(const std::string& record) {
  Lost lost{};
  return head_of(record, lost) && lost.header.type == PERF_RECORD_LOST ? lost.lost : 0;
}

struct Sideband::Impl {
  std::map<uint32_t, PerfRing> rings;  // by CPU
  Fd poll;
  size_t bytes = 0;
  Maps maps = Maps::yes;
  uint64_t lost = 0;
};

Result<Sideband> Sideband::open(size_t ring_bytes, Maps maps) {
  auto impl = std::make_unique<Impl>();
  size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  while (bytes < ring_bytes) bytes *= 2;
  impl->bytes = bytes;
  impl->maps = maps;
  impl->poll = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!impl->poll.valid()) return fail_errno("following processes");
  Sideband sideband(std::move(impl));
  const auto cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  for (uint32_t cpu = 0; cpu < cpus; ++cpu)
    if (auto r = sideband.follow(cpu); !r) return std::unexpected(r.error());
  return sideband;
}

// A ring that is closed is polled no more.
Result<> Sideband::follow(uint32_t cpu) {
  auto ring = open_ring(static_cast<int>(cpu), impl_->bytes, impl_->maps);
  if (!ring) return std::unexpected(ring.error());
  if (!*ring) return {};
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(impl_->poll.get(), EPOLL_CTL_ADD, (*ring)->fd(), &event))
    return fail_errno("following processes on CPU " + std::to_string(cpu));
  impl_->rings.insert_or_assign(cpu, std::move(**ring));
  return {};
}

size_t Sideband::ring_bytes_for(uint32_t cpus) {
  constexpr size_t all = 32 << 20;
  constexpr size_t least = 32 << 10;
  constexpr size_t most = 512 << 10;
  return std::clamp(std::bit_floor(all / std::max(cpus, 1U)), least, most);
}

std::vector<ProcessEvent> Sideband::take() {
  std::vector<ProcessEvent> events;
  for (auto& [cpu, ring] : impl_->rings) {
    ring.take([&](const std::string& record) {
      impl_->lost += lost_in(record);
      if (ProcessEvent e; parse_process_event(record, e)) events.push_back(std::move(e));
    });
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.time < b.time; });
  return events;
}

uint64_t Sideband::lost() const {
  return impl_->lost;
}
int Sideband::poll_fd() const {
  return impl_->poll.get();
}

Sideband::Sideband(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sideband::Sideband(Sideband&&) noexcept = default;
Sideband& Sideband::operator=(Sideband&&) noexcept = default;
Sideband::~Sideband() = default;

}  // namespace pkprof
