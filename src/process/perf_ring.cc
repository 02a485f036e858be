// SPDX-License-Identifier: Apache-2.0
#include "process/perf_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pkprof {

std::expected<PerfRing, int> PerfRing::open(perf_event_attr attr, pid_t pid, int cpu,
                                            size_t bytes) {
  PerfRing ring;
  ring.fd_ =
      Fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!ring.fd_.valid()) return std::unexpected(errno);
  ring.page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ring.data_bytes_ = bytes;
  void* base =
      mmap(nullptr, bytes + ring.page_, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd_.get(), 0);
  if (base == MAP_FAILED) return std::unexpected(errno);
  ring.base_ = base;
  return ring;
}

PerfRing::PerfRing(PerfRing&& o) noexcept
    : fd_(std::move(o.fd_)),
      base_(std::exchange(o.base_, nullptr)),
      data_bytes_(o.data_bytes_),
      page_(o.page_) {}

PerfRing& PerfRing::operator=(PerfRing&& o) noexcept {
  std::swap(fd_, o.fd_);
  std::swap(base_, o.base_);
  std::swap(data_bytes_, o.data_bytes_);
  std::swap(page_, o.page_);
  return *this;
}

PerfRing::~PerfRing() {
  if (base_) munmap(base_, data_bytes_ + page_);
}

void PerfRing::take(const std::function<void(const std::string&)>& each) {
  auto* control = static_cast<perf_event_mmap_page*>(base_);
  const auto* data = static_cast<const char*>(base_) + page_;
  const uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  uint64_t tail = control->data_tail;
  std::string record;
  while (tail < head) {
    perf_event_header header{};
    for (size_t i = 0; i < sizeof(header); ++i)
      reinterpret_cast<char*>(&header)[i] = data[(tail + i) % data_bytes_];
    if (header.size < sizeof(header)) break;
    record.resize(header.size);
    const size_t at = tail % data_bytes_;
    const size_t first = std::min<size_t>(header.size, data_bytes_ - at);
    std::memcpy(record.data(), data + at, first);
    std::memcpy(record.data() + first, data, header.size - first);
    each(record);
    tail += header.size;
  }
  std::atomic_ref(control->data_tail).store(head, std::memory_order_release);
}

}  // namespace pkprof
