// SPDX-License-Identifier: Apache-2.0
// Makes cheap system calls in a loop and says what one takes, ns; or holds a program that does
// nothing on every system call's beginning and end, to be compared with.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "args/arg_parser.h"
#include "debox.h"

namespace pkprof {
namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// A file of one page, in memory.
int cached_file() {
  const int fd = memfd_create("cached", MFD_CLOEXEC);
  char page[4096] = {};
  if (fd < 0 || write(fd, page, sizeof page) != sizeof page) die("memfd");
  return fd;
}

template <typename Call>
double each_ns(uint64_t calls, const Call& call) {
  const double start = now_ns();
  for (uint64_t i = 0; i < calls; ++i) call();
  return (now_ns() - start) / static_cast<double>(calls);
}

// `raw_tp` programs: return 0.
int hold_empty_hooks() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  bpf_insn code[2] = {};
  code[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  code[1].code = BPF_JMP | BPF_EXIT;
  for (const char* where : {"sys_enter", "sys_exit"}) {
    const int program =
        bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL", code, std::size(code), nullptr);
    if (program < 0 || bpf_raw_tracepoint_open(where, program) < 0) die(where);
  }
  std::puts("holding");
  std::fflush(stdout);
  pause();
  return 0;
}

int run(int argc, char** argv) {
  ArgParser app("What a system call takes, marked or not.");
  std::string call = "getppid";
  std::string mode = "plain";
  double seconds = 0.5;
  int slices = 5;
  bool trace = false;
  app.add("--call", call, "getppid, read").one_of({"getppid", "read"});
  app.add("--mode", mode,
          "plain, marked, all (the kernel side records each), asleep (marked), empty-hooks")
      .one_of({"plain", "marked", "all", "asleep", "empty-hooks"});
  app.add("--seconds", seconds, "Of a slice").positive();
  app.add("--slices", slices, "Of which the median is said").positive();
  app.add("--trace", trace, "Records come with the kernel's functions that were entered");
  if (const auto end = app.parse(argc, argv)) return *end;
  if (mode == "empty-hooks") return hold_empty_hooks();
  if (mode != "plain") {
    debox_options options = DEBOX_OPTIONS_INIT;
    if (mode == "all") options.mode = DEBOX_ALL_CALLS;
    if (trace) {
      options.parts |= DEBOX_PART_TRACE;
      options.traces = 64;
    }
    if (debox_on(&options)) die("debox_on");
    if (!debox_serves()) die("not served");
  }
  if (mode == "asleep") {
    debox_begin(SYS_pause);
    debox_end(pause());
    return 0;
  }
  const int fd = cached_file();
  char page[4096];
  const auto once = [&] {
    if (call == "getppid") return syscall(SYS_getppid);
    return static_cast<long>(pread(fd, page, sizeof page, 0));
  };
  const auto marked = [&] {
    debox_begin(call == "getppid" ? SYS_getppid : SYS_pread64);
    debox_end(once());
  };
  const auto some = [&](uint64_t calls) {
    return mode == "marked" ? each_ns(calls, marked) : each_ns(calls, once);
  };
  const auto calls = static_cast<uint64_t>(seconds * 1e9 / some(20'000));
  std::vector<double> all;
  all.reserve(static_cast<size_t>(slices));
  for (int i = 0; i < slices; ++i) all.push_back(some(calls));
  std::ranges::sort(all);
  std::fprintf(stderr, "%.1f\n", all[all.size() / 2]);
  return 0;
}

}  // namespace
}  // namespace pkprof

int main(int argc, char** argv) {
  return pkprof::run(argc, argv);
}
