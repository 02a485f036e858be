// SPDX-License-Identifier: Apache-2.0
// What profiling cost in 1996: S. Nishioka, A. Kawaguchi, H. Motoda, "Process-labeled kernel
// profiling: a new facility to profile system activities", USENIX 1996 Annual Technical Conference,
// San Diego, January 1996, section 5.1. Figures are as its text sums up its tables; the cells of
// the tables are not in the edition that we have.
#pragma once

#include <array>

namespace pkprof::overhead {

struct PaperFigure {
  const char* measured;  // what they measured
  const char* table;     // the table that it is from
  const char* kprof;     // the kernel profiler that theirs was made from
  const char* pkprof;    // theirs
  const char* workload;  // ours that comes nearest, or "" for none
  const char* remark;    // where ours differs, or why there is none
};

inline constexpr const char* kPaper =
    "S. Nishioka, A. Kawaguchi, H. Motoda, \"Process-labeled kernel profiling: a new facility to "
    "profile system activities\", USENIX 1996 Annual Technical Conference, section 5.1 (on a "
    "DECstation 5000/200, MIPS R3000 at 25 MHz, 16 MB, 4.4BSD-Lite)";

inline constexpr std::array<PaperFigure, 4> kPaperFigures = {{
    {"UDP packets of 64 bytes received, with : without", "Table 5.5", "about 0.40", "about 0.20",
     "udp",
     "they: over Ethernet, at the highest rate without a drop; we: through a veth pair, a "
     "flood"},
    {"files read from disk, past the cache, with : without", "Table 5.4", "over 0.97", "over 0.97",
     "direct-read", "they: a SCSI disk; we: a loop device in memory, which hides nothing"},
    {"time in the monitor that each kernel function calls, PKPROF : KPROF", "Table 5.1", "1",
     "1.16", "", "3.1 % of all of the kernel's CPU time; pkprof samples, and has no monitor"},
    {"time in the eight routines that switch processes, with process tracking : without",
     "Table 5.2", "–", "1.0004", "",
     "a time, not a throughput; ours is part of the context-switch ping-pong above"},
}};

}  // namespace pkprof::overhead
