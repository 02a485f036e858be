// SPDX-License-Identifier: Apache-2.0
// Many calls of one kind.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "debox_calls.h"

namespace pkprof::workload {
namespace {

const int64_t getppid_of_all = getppid();

}  // namespace

void many(uint32_t calls, uint32_t records) {
  for (uint32_t i = 0; i < calls; ++i) recorded(SYS_getppid, [] { return syscall(SYS_getppid); });
  debox_record record;
  uint64_t read = 0;
  uint64_t last = 0;
  bool in_order = true;
  while (read < uint64_t{2} * records && debox_next(&record)) {
    in_order = in_order && (!last || record.sequence == last + 2);
    last = record.sequence;
    ++read;
  }
  say("many", debox_last(),
      {{"calls", calls},
       {"kept", records},
       {"read", read},
       {"lost", debox_lost()},
       {"in_order", in_order}});
}

void storm(int threads, double seconds, const debox_options& options) {
  struct Sum {
    std::atomic<uint64_t> calls = 0, read = 0, lost = 0, wrong = 0;
  } sum;
  const uint64_t end = now_ns() + static_cast<uint64_t>(seconds * 1e9);
  const auto work = [&] {
    const debox::On on(options);
    uint64_t calls = 0;
    uint64_t read = 0;
    uint64_t wrong = 0;
    uint64_t last = 0;
    const auto read_all = [&] {
      debox_record r;
      while (debox_next(&r)) {
        if (r.number != SYS_getppid) continue;  // not ours
        ++read;
        if (r.argument[0] <= last || r.argument[0] > calls || r.argument[5] != ~r.argument[0] ||
            r.result != getppid_of_all)
          ++wrong;
        last = r.argument[0];
      }
    };
    while (now_ns() < end) {
      // More than are kept: some are lost, and counted.
      for (uint32_t i = 0; i < options.records + options.records / 4; ++i) {
        ++calls;
        const uint64_t argument[6] = {calls, 0, 0, 0, 0, ~calls};
        if (all_calls)
          syscall(SYS_getppid, argument[0], 0, 0, 0, 0, argument[5]);
        else
          debox_syscall(SYS_getppid, argument);
      }
      read_all();
    }
    sum.calls += calls;
    sum.read += read;
    sum.lost += debox_lost();
    sum.wrong += wrong;
  };
  {
    std::vector<std::jthread> all;
    all.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) all.emplace_back(work);
  }
  say("storm", nullptr,
      {{"calls", sum.calls.load()},
       {"read", sum.read.load()},
       {"lost", sum.lost.load()},
       {"wrong", sum.wrong.load()}});
}

void nap_often(uint32_t naps) {
  const timespec t{0, 1'000'000};
  uint64_t unseen = 0;
  uint64_t too_short = 0;
  for (uint32_t i = 0; i < naps; ++i) {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    const debox_record record =
        *recorded(SYS_clock_nanosleep, [&] { return static_cast<long>(nanosleep(&t, nullptr)); });
    getrusage(RUSAGE_THREAD, &after);
    unseen += (record.flags & DEBOX_UNSEEN) != 0;
    // A timer may fire before its thread lies down, where the CPU stands still for a while.
    const bool marked_unseen = !all_calls && record.flags & DEBOX_UNSEEN;
    too_short += !marked_unseen && after.ru_nvcsw != before.ru_nvcsw &&
                 (record.sleeps != 1 || record.asleep_ns == 0 || record.voluntary != 1);
  }
  say("naps", nullptr, {{"naps", naps}, {"unseen", unseen}, {"too_short", too_short}});
}

}  // namespace pkprof::workload
