// SPDX-License-Identifier: Apache-2.0
// Reads the records of its own calls, of each of which it is known what it does. Prints a line of
// JSON for each, with what is true beside it.
#include <sys/syscall.h>
#include <unistd.h>

#include "debox_calls.h"

namespace pkprof::workload {
namespace {

int run(int argc, char** argv) {
  ArgParser app("Reads the records of its own system calls.");
  std::string path = "/var/tmp/pk_debox.data";
  int others = 3;
  uint32_t records = 16;
  uint32_t calls = 100;
  double wait_s = 0;
  int storming = 0;
  uint32_t naps = 0;
  bool tracing = false;
  int receiving = -1;
  bool streaming = false;
  app.add("--all-calls", all_calls, "The kernel side records each, none is marked");
  app.add("--others", others, "That wait for the same").positive();
  app.add("--file", path, "To be read");
  app.add("--records", records, "That are kept").positive();
  app.add("--calls", calls, "Of which so many are kept").positive();
  app.add("--naps", naps, "A millisecond each, nothing else").positive();
  app.add("--trace", tracing, "Calls of which the kernel's functions are of interest");
  app.add("--storm", storming, "Threads that make calls all the time, for two seconds").positive();
  app.add("--receive", receiving, "At this port; 0: nothing at all").range(0, 65535);
  app.add("--stream", streaming, "One stream, and no datagrams");
  app.add("--wait", wait_s, "Seconds to wait for being served");
  if (const auto end = app.parse(argc, argv)) return *end;
  debox_options options = DEBOX_OPTIONS_INIT;
  options.mode = all_calls ? DEBOX_ALL_CALLS : DEBOX_MARKED_CALLS;
  options.records = records;
  if (tracing) {
    options.parts |= DEBOX_PART_TRACE;
    options.traces = 1000;
    const debox::On on(options);
    traced();
    return 0;
  }
  if (naps) {
    const debox::On on(options);
    nap_often(naps);
    return 0;
  }
  if (storming) {
    storm(storming, 2, options);
    return 0;
  }
  const uint64_t patience = now_ns() + static_cast<uint64_t>(wait_s * 1e9);
  while (all_calls && now_ns() < patience && debox_on(&options)) nap_ms(100);
  const debox::On on(options);
  while (!debox_serves() && now_ns() < patience) {
    debox::marked(SYS_getppid, [] { return static_cast<long>(getppid()); });
    nap_ms(100);
  }
  say("begins", nullptr, {{"serves", debox_serves() != 0}});
  if (receiving >= 0) {
    receive(static_cast<uint16_t>(receiving), streaming);
    return 0;
  }
  all_kinds(others, path);
  many(calls, records);
  return 0;
}

}  // namespace
}  // namespace pkprof::workload

int main(int argc, char** argv) {
  return pkprof::workload::guarded(pkprof::workload::run, argc, argv);
}
