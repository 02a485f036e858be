// SPDX-License-Identifier: Apache-2.0
#include "debox_calls.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace pkprof::workload {

bool all_calls = false;
uint64_t outer_ns = 0;

namespace {

Json json_of(const debox_record& r) {
  Json sleeps = Json::array();
  for (const debox_sleep& s : debox::sleeps(r))
    sleeps.push_back(
        {{"place", debox_place(s.place)},
         {"inside", debox_place(s.inside)},
         {"resource", s.resource},
         {"total_ns", s.total_ns},
         {"longest_ns", s.longest_ns},
         {"runnable_ns", s.runnable_ns},
         {"count", s.count},
         {"waiters_entry", s.waiters_entry},
         {"waiters_exit", s.waiters_exit},
         {"waker_context", s.waker.context},
         {"waker_tid", s.waker.tid},
         {"waker_for", s.waker.for_pid},
         {"waker_comm", std::string(s.waker.comm, strnlen(s.waker.comm, DEBOX_COMM))}});
  Json faults = Json::array();
  for (const debox_fault& f : debox::faults(r))
    faults.push_back({{"address", f.address},
                      {"minor", f.minor},
                      {"major", f.major},
                      {"place", debox_place(f.place)}});
  return {{"sequence", r.sequence},
          {"number", r.number},
          {"result", r.result},
          {"wall_ns", r.wall_ns},
          {"asleep_ns", r.asleep_ns},
          {"runnable_ns", r.runnable_ns},
          {"voluntary", r.voluntary},
          {"forced", r.forced},
          {"minor_faults", r.minor_faults},
          {"major_faults", r.major_faults},
          {"signals", r.signals},
          {"restarts", r.restarts},
          {"async_ns", r.async_ns},
          {"unseen", (r.flags & DEBOX_UNSEEN) != 0},
          {"pid", r.pid},
          {"tid", r.tid},
          {"argument", r.argument},
          {"sleeps", sleeps},
          {"faults", faults}};
}

}  // namespace

void nap_ms(uint64_t ms) {
  const timespec t{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
  nanosleep(&t, nullptr);
}

uint32_t own_tid() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

void say(const std::string& what, const debox_record* record, Json truth) {
  Json line = {{"what", what}, {"truth", std::move(truth)}, {"outer_ns", outer_ns}};
  if (record) line["record"] = json_of(*record);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace pkprof::workload
