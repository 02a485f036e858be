// SPDX-License-Identifier: Apache-2.0
#include "collect/sideband.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/fd.h"

namespace pkprof {
namespace {

struct Ring {
  Fd fd;
  void* base = nullptr;
  size_t data_bytes = 0;
  size_t page = 0;

  Ring() = default;
  Ring(Ring&& o) noexcept
      : fd(std::move(o.fd)),
        base(std::exchange(o.base, nullptr)),
        data_bytes(o.data_bytes),
        page(o.page) {}
  Ring& operator=(Ring&&) = delete;
  ~Ring() {
    if (base) munmap(base, data_bytes + page);
  }
  [[nodiscard]] perf_event_mmap_page* control() const {
    return static_cast<perf_event_mmap_page*>(base);
  }
};

// A ring without a base for a CPU that is not there.
Result<Ring> open_ring(int cpu, size_t bytes) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.sample_id_all = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<uint32_t>(bytes / 2);
  Ring ring;
  ring.fd =
      Fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!ring.fd.valid() && errno == ENODEV) return ring;  // possible, but not online
  if (!ring.fd.valid()) return fail_errno("following processes on CPU " + std::to_string(cpu));
  ring.page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ring.data_bytes = bytes;
  void* base =
      mmap(nullptr, bytes + ring.page, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
  if (base == MAP_FAILED) return fail_errno("mapping the ring of CPU " + std::to_string(cpu));
  ring.base = base;
  return ring;
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

template <typename T>
bool head_of(const std::string& record, T& out) {
  if (record.size() < sizeof(T)) return false;
  std::memcpy(&out, record.data(), sizeof(T));
  return true;
}

void parse_record(const std::string& record, std::vector<ProcessEvent>& out, uint64_t& lost) {
  perf_event_header header{};
  SampleId id{};
  if (!head_of(record, header) || record.size() < sizeof(header) + sizeof(id)) return;
  std::memcpy(&id, record.data() + record.size() - sizeof(id), sizeof(id));
  ProcessEvent e;
  e.time = id.time;
  if (Mmap2 m{}; header.type == PERF_RECORD_MMAP2 && head_of(record, m)) {
    e.kind = ProcessEvent::Kind::map;
    e.pid = m.pid;
    e.map = {m.addr, m.addr + m.len, m.pgoff, m.ino, m.maj, m.min, text_of(record, sizeof(m)), ""};
  } else if (Comm c{}; header.type == PERF_RECORD_COMM && head_of(record, c)) {
    if (!(header.misc & PERF_RECORD_MISC_COMM_EXEC)) return;
    e.kind = ProcessEvent::Kind::exec;
    e.pid = c.pid;
    e.comm = text_of(record, sizeof(c));
  } else if (Task t{}; (header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT) &&
                       head_of(record, t)) {
    if (t.pid != t.tid) return;  // a thread
    e.kind = header.type == PERF_RECORD_FORK ? ProcessEvent::Kind::fork : ProcessEvent::Kind::exit;
    e.pid = t.pid;
    e.parent = t.ppid;
    e.time = t.time;
  } else {
    if (Lost l{}; header.type == PERF_RECORD_LOST && head_of(record, l)) lost += l.lost;
    return;
  }
  out.push_back(std::move(e));
}

void read_ring(Ring& ring, std::vector<ProcessEvent>& out, uint64_t& lost) {
  perf_event_mmap_page* control = ring.control();
  const auto* data = static_cast<const char*>(ring.base) + ring.page;
  const uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  uint64_t tail = control->data_tail;
  std::string record;
  while (tail < head) {
    perf_event_header header{};
    for (size_t i = 0; i < sizeof(header); ++i)
      reinterpret_cast<char*>(&header)[i] = data[(tail + i) % ring.data_bytes];
    if (header.size < sizeof(header)) break;
    record.resize(header.size);
    const size_t at = tail % ring.data_bytes;
    const size_t first = std::min<size_t>(header.size, ring.data_bytes - at);
    std::memcpy(record.data(), data + at, first);
    std::memcpy(record.data() + first, data, header.size - first);
    parse_record(record, out, lost);
    tail += header.size;
  }
  std::atomic_ref(control->data_tail).store(head, std::memory_order_release);
}

}  // namespace

struct Sideband::Impl {
  std::vector<Ring> rings;
  std::vector<int> fds;
  uint64_t lost = 0;
};

Result<Sideband> Sideband::open(size_t ring_bytes) {
  auto impl = std::make_unique<Impl>();
  size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  while (bytes < ring_bytes) bytes *= 2;
  const int cpus = libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto ring = open_ring(cpu, bytes);
    if (!ring) return std::unexpected(ring.error());
    if (!ring->base) continue;
    impl->fds.push_back(ring->fd.get());
    impl->rings.push_back(std::move(*ring));
  }
  return Sideband(std::move(impl));
}

size_t Sideband::ring_bytes_for(uint32_t cpus) {
  constexpr size_t all = 32 << 20;
  constexpr size_t least = 32 << 10;
  constexpr size_t most = 512 << 10;
  return std::clamp(std::bit_floor(all / std::max(cpus, 1U)), least, most);
}

std::vector<ProcessEvent> Sideband::take() {
  std::vector<ProcessEvent> events;
  for (Ring& ring : impl_->rings) read_ring(ring, events, impl_->lost);
  std::stable_sort(events.begin(), events.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.time < b.time; });
  return events;
}

uint64_t Sideband::lost() const {
  return impl_->lost;
}
const std::vector<int>& Sideband::poll_fds() const {
  return impl_->fds;
}

Sideband::Sideband(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sideband::Sideband(Sideband&&) noexcept = default;
Sideband& Sideband::operator=(Sideband&&) noexcept = default;
Sideband::~Sideband() = default;

}  // namespace pkprof
