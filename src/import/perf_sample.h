// SPDX-License-Identifier: Apache-2.0
// One sample as `perf script` prints it: a line that says who, when and of what, and a line for
// each frame, innermost first.
//
//   nginx  812/813  [001]  4711.123456:   10101010 cpu-clock:pppH:
//           ffffffff81a2b3c4 tcp_recvmsg+0x64 ([kernel.kallsyms])
//               7f1e2d3c4b5a recv+0x1a (/usr/lib/x86_64-linux-gnu/libc.so.6)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pkprof {

struct PerfFrame {
  uint64_t address = 0;
  std::string function;  // "" if it has no name
  std::string file;      // as perf names it; "" where it does not
};

struct PerfSample {
  std::string comm;
  uint32_t pid = 0;  // of the process, or if that is all that was printed, of the thread
  uint32_t tid = 0;
  std::optional<uint32_t> cpu;
  uint64_t time_ns = 0;
  uint64_t period = 1;
  std::string event;  // "cpu-clock", "cycles"; without modifiers
  std::vector<PerfFrame> frames;
};

// The first line of a sample; nothing where it is none, or has no time.
[[nodiscard]] std::optional<PerfSample> parse_perf_header(std::string_view line);
[[nodiscard]] std::optional<PerfFrame> parse_perf_frame(std::string_view line);

}  // namespace pkprof
