// SPDX-License-Identifier: Apache-2.0
// Calls with traces.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "debox_calls.h"

namespace pkprof::workload {
namespace {

// The record of a call with the kernel's functions that it entered.
void say_traced(const std::string& what, const debox_record* r) {
  if (!r) die(what);
  // Asking for names takes calls, which are recorded where all are.
  const debox_record record = *r;
  std::vector<debox_trace> traces;
  if (const debox_trace* first = debox_traces_of(r)) traces.assign(first, first + r->traces);
  Json trace = Json::array();
  for (const debox_trace& t : traces)
    trace.push_back({{"function", debox_place(t.function)},
                     {"depth", t.depth},
                     {"begin_ns", t.begin_ns},
                     {"wall_ns", t.wall_ns}});
  say(what, &record,
      {{"trace", trace},
       {"left_out", record.traces_left_out},
       {"sampled", (record.flags & DEBOX_SAMPLED) != 0},
       {"start_ns", record.start_ns},
       {"runnable_ns", record.runnable_ns}});
}

}  // namespace

void traced() {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  int pipe_fds[2];
  if (zero < 0 || pipe2(pipe_fds, O_CLOEXEC)) die("pipe2");
  static char data[5][4096];  // a page each
  iovec parts[5];
  for (size_t i = 0; i < 5; ++i) parts[i] = {data[i], sizeof data[i]};
  say_traced("readv",
             recorded(SYS_readv, [&] { return static_cast<long>(readv(zero, parts, 5)); }));
  say_traced("writev", recorded(SYS_writev,
                                [&] { return static_cast<long>(writev(pipe_fds[1], parts, 3)); }));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC;
  say_traced("openat2", recorded(SYS_openat2, [&] {
               return syscall(SYS_openat2, AT_FDCWD, "/dev/null", &how, sizeof how);
             }));
  // The pipe has what was written; then this one waits for more.
  iovec rest = {data, sizeof data};
  (void)!readv(pipe_fds[0], &rest, 1);
  std::jthread writer([&] {
    nap_ms(50);
    (void)!write(pipe_fds[1], "x", 1);
  });
  say_traced("preadv2", recorded(SYS_preadv2, [&] {
               return static_cast<long>(preadv2(pipe_fds[0], &rest, 1, -1, 0));
             }));
  // Long enough for samples.
  constexpr size_t size = size_t{64} << 20;
  std::vector<char> large(size);
  say_traced("read",
             recorded(SYS_read, [&] { return static_cast<long>(read(zero, large.data(), size)); }));
}

}  // namespace pkprof::workload
