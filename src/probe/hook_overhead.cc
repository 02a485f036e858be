// SPDX-License-Identifier: Apache-2.0
#include "probe/hook_overhead.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/prctl.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"
#include "probe/libbpf_log.h"

namespace pkprof {

HookOverhead measure_overhead(bpf_program* program, bpf_link** kept) {
  constexpr int rounds = 15;
  constexpr int loops = 100;  // few: who watches processes gets an event for each
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  const auto best_of = [&](int times) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < times; ++i) {
      const uint64_t start = monotonic_ns();
      for (int n = 0; n < loops; ++n) prctl(PR_SET_NAME, name);
      best = std::min(best, monotonic_ns() - start);
    }
    return best;
  };
  const int fd = bpf_program__fd(program);
  if (fd < 0) return {};
  const uint64_t without = best_of(rounds);
  LibbpfLog log;
  std::unique_ptr<bpf_link, int (*)(bpf_link*)> link(bpf_program__attach(program),
                                                     bpf_link__destroy);
  if (!link) return {};
  const uint64_t with = best_of(rounds);
  HookOverhead overhead;
  overhead.dispatch_ns = with > without ? (with - without) / loops : 0;
  if (const Fd timing(bpf_enable_stats(BPF_STATS_RUN_TIME)); timing.valid()) {
    uint64_t seen = 0;
    for (int i = 0; i < 9; ++i) {
      best_of(1);
      bpf_prog_info info{};
      uint32_t size = sizeof(info);
      if (bpf_obj_get_info_by_fd(fd, &info, &size)) break;
      const uint64_t each = (info.run_time_ns - seen) / loops;
      overhead.timing_ns = i ? std::min(overhead.timing_ns, each) : each;
      seen = info.run_time_ns;
    }
  }
  if (kept) *kept = link.release();
  return overhead;
}

}  // namespace pkprof
