// SPDX-License-Identifier: Apache-2.0
// A perf event and the ring that the kernel writes its records into.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "base/fd.h"

namespace pkprof {

class PerfRing {
 public:
  // `bytes` is a power of two of pages. Fails with an errno value: ENODEV for a CPU that is
  // possible, but not online.
  static std::expected<PerfRing, int> open(perf_event_attr attr, pid_t pid, int cpu, size_t bytes);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&& other) noexcept;
  ~PerfRing();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Each record that was written so far, head and all, and its room given back.
  void take(const std::function<void(const std::string& record)>& each);

 private:
  PerfRing() = default;

  Fd fd_;
  void* base_ = nullptr;
  size_t data_bytes_ = 0;
  size_t page_ = 0;
};

// The fixed head of a record; false when the record is shorter.
template <typename T>
bool head_of(const std::string& record, T& out) {
  if (record.size() < sizeof(T)) return false;
  __builtin_memcpy(&out, record.data(), sizeof(T));
  return true;
}

}  // namespace pkprof
