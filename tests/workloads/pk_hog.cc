// SPDX-License-Identifier: Apache-2.0
// The innocent bystander: burns CPU in user space and asks the kernel for nothing. All kernel time
// found on its CPU while it runs was for somebody else (or for the clock).
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "workload.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  ArgParser app("Burns CPU in user space, with no system call until the end.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  bool barriers = false;
  app.add("--barriers", barriers, "take part in other processes' memory barriers");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  if (barriers && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0))
    die("membarrier");
  say_ready();

  const uint64_t start = now_ns();
  uint64_t loops = 0;
  volatile uint64_t sink = 1;
  while (!stopped()) {
    for (int i = 0; i < 1000; ++i) sink = sink * 6364136223846793005U + 1442695040888963407U;
    ++loops;
  }
  print_result({{"program", "pk_hog"}, {"wall_ns", now_ns() - start}, {"loops", loops}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
