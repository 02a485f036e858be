// SPDX-License-Identifier: Apache-2.0
// What is known of the system calls of one or several processes.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "debox/debox_record.h"
#include "model/durations.h"

namespace pkprof {

// "softirq"; of enum debox_context.
[[nodiscard]] constexpr const char* context_name(uint32_t context) {
  switch (context) {
    case DEBOX_BY_PROCESS:
      return "process";
    case DEBOX_BY_KTHREAD:
      return "kernel thread";
    case DEBOX_BY_SOFTIRQ:
      return "softirq";
    case DEBOX_BY_INTERRUPT:
      return "interrupt";
    default:
      return "unknown";
  }
}

// All calls of one kind. Times are ns.
struct CallKind {
  std::string name;
  uint64_t count = 0;
  uint64_t errors = 0;
  uint64_t total_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t asleep_ns = 0;    // waiting for something
  uint64_t runnable_ns = 0;  // waiting for a CPU
  uint64_t voluntary = 0;    // context switches: it slept
  uint64_t forced = 0;       // and: it had to make room
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  uint64_t bytes = 0;
  uint64_t async_ns = 0;  // kernel time spent for it elsewhere
  Durations durations;

  [[nodiscard]] uint64_t cpu_ns() const {
    const uint64_t off = asleep_ns + runnable_ns;
    return total_ns - (off < total_ns ? off : total_ns);
  }
};

struct Waker {
  uint64_t count = 0;
  uint32_t context = DEBOX_BY_NOBODY;  // enum debox_context
  uint32_t pid = 0;                    // of a process; of a thread of the kernel, its own number
  std::string comm;
};

// Where calls of one kind slept.
struct SleepPlace {
  std::string call;
  std::string place;   // "pipe_read+0x1a4"
  std::string inside;  // "schedule+0x27"
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t runnable_ns = 0;
  uint64_t waiters = 0;  // others who waited for the same, over the times that it is known
  uint64_t waiters_known = 0;
  uint64_t waiters_most = 0;
  std::vector<Waker> wakers;  // the most frequent first
};

// A call with its whole record.
struct SlowCall {
  debox_record record{};
  std::vector<debox_trace> trace;   // of functions, by their numbers as places
  std::vector<std::string> frames;  // of the program's stack, innermost first; if they are wanted
};

struct SystemCalls {
  std::string command;
  uint64_t duration_ns = 0;
  uint64_t cost_kernel_ns = 0;  // what pkprof itself took, of all CPUs
  uint64_t cost_user_ns = 0;
  std::vector<CallKind> kinds;             // the longest in total first
  std::vector<SleepPlace> sleeps;          // the same
  std::vector<SlowCall> slowest;           // the slowest first
  std::map<uint32_t, std::string> places;  // by the numbers that records have
  std::map<uint32_t, std::string> names;   // of calls, by what number_of() gives
  std::vector<std::string> degraded;       // what is missing, a sentence each

  // The number of a record's call, with a bit set where it is of the 32-bit table.
  [[nodiscard]] static uint32_t number_of(const debox_record& record) {
    return record.number | (record.flags & DEBOX_COMPAT ? uint32_t{1} << 31 : 0);
  }
  [[nodiscard]] std::string name_of(const debox_record& record) const {
    const auto it = names.find(number_of(record));
    return it == names.end() ? "#" + std::to_string(record.number) : it->second;
  }
};

// What came after `before`, an earlier state of the same: its calls, and those of its places. The
// longest times are of calls that ended since, and of places the longest ever. Slowest calls are
// left out.
[[nodiscard]] SystemCalls calls_since(const SystemCalls& now, const SystemCalls& before);

}  // namespace pkprof
