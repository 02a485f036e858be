// SPDX-License-Identifier: Apache-2.0
// One sample as `perf script` prints it: who, when and of what, and where.
//
//   nginx  812/813  [001]  4711.123456:   10101010 cpu-clock:pppH:
//           ffffffff81a2b3c4 tcp_recvmsg+0x64 ([kernel.kallsyms])
//               7f1e2d3c4b5a recv+0x1a (/usr/lib/x86_64-linux-gnu/libc.so.6)
//
// Which fields there are is up to who ran it (-F), and to what was recorded. Here [ ] may be left
// out, and a word is anything without blanks:
//
//   sample  = [comm] [ids] [cpu] [flags] [time] [period] [event] [values] [frame] NL stack
//   comm    = text, in which there may be anything
//   ids     = NUMBER ["/" NUMBER]          process and thread, or one of them; -1: it has ended
//   cpu     = "[" NUMBER "]"
//   flags   = letters and dots             what was interrupted
//   time    = SECONDS "." DIGITS ":"
//   event   = word ":"                     with modifiers behind another colon
//   values  = addresses and weights        skipped
//   stack   = { TAB frame NL [source NL] } NL
//   frame   = HEX [function ["+0x" HEX]] ["(" file ["+0x" HEX] ")"]
//   source  = two blanks, file ":" line    skipped
//
// Without call graphs there is one frame, on the sample's own line, and no stack.
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
  // Of the process, or if that is all that was printed, of the thread; none: it was not printed, or
  // the thread had ended.
  std::optional<uint32_t> pid;
  uint32_t tid = 0;
  std::optional<uint32_t> cpu;
  std::optional<uint64_t> time_ns;
  std::optional<uint64_t> period;
  std::string event;  // "cpu-clock", "sched:sched_switch"; without modifiers; "" if not printed
  std::vector<PerfFrame> frames;
};

// The first line of a sample, with its frame if it has one; nothing where it is none.
[[nodiscard]] std::optional<PerfSample> parse_perf_header(std::string_view line);
// The same of one that has neither time nor event, nor a frame: many a line looks like that. It is
// one where a stack follows.
[[nodiscard]] std::optional<PerfSample> parse_bare_perf_header(std::string_view line);
[[nodiscard]] std::optional<PerfFrame> parse_perf_frame(std::string_view line);

}  // namespace pkprof
