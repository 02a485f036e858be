// SPDX-License-Identifier: Apache-2.0
// A sampler that does nothing: on each CPU a clock of the same kind and frequency as pkprof's, and
// on it a BPF program that returns at once. What it costs is what any sampler at that frequency
// costs on this machine; what pkprof costs beyond is pkprof's own.
//
//   bare_sampler HZ [NS [TRACEPOINT...]]
//
// samples until SIGINT or SIGTERM; prints "ready" once it does. With NS (0: not) the program waits
// for so long, and does nothing else: what it costs to be interrupted for as long as some other
// sampler's samples take, whatever it does in the time. On the tracepoints a program that returns
// at once is attached, too: what hooks there cost, whatever they do. One named twice has two.
//
// The program is a few instructions, so it is given as such: no compiler, no object file.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/fd.h"

namespace {

using pkprof::Fd;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bare_sampler: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

constexpr int most_looks = 4000;  // at the time: the verifier wants an end
constexpr unsigned long longest_wait_ns = 50'000;

std::vector<bpf_insn> program_code(unsigned long wait_ns) {
  const bpf_insn time = {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns};
  std::vector<bpf_insn> code;
  if (wait_ns) {
    code = {
        time,
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_7, .imm = 0},
        time,  // again and again
        {.code = BPF_ALU64 | BPF_SUB | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_6},
        {.code = BPF_JMP | BPF_JGE | BPF_K,
         .dst_reg = BPF_REG_0,
         .off = 2,
         .imm = static_cast<int>(wait_ns)},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_7, .imm = 1},
        {.code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = BPF_REG_7, .off = -5, .imm = most_looks},
    };
  }
  code.push_back({.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0});
  code.push_back({.code = BPF_JMP | BPF_EXIT});
  return code;
}

Fd load_program(bpf_prog_type type, unsigned long wait_ns) {
  const std::vector<bpf_insn> code = program_code(wait_ns);
  Fd program(bpf_prog_load(type, "bare", "GPL", code.data(), code.size(), nullptr));
  if (!program.valid()) die("loading the program");
  return program;
}

// A clock on the CPU that runs the program; none if there is no such CPU, or it is off.
Fd sample(int cpu, unsigned long hz, const Fd& program) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 1'000'000'000 / hz;
  attr.disabled = 1;
  Fd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event.valid()) {
    if (errno == ENODEV || errno == EINVAL) return event;
    die("perf_event_open");
  }
  if (ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program.get())) die("attaching the program");
  if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0)) die("starting the clock");
  return event;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long hz = argc >= 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const unsigned long wait_ns = argc >= 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (hz == 0 || wait_ns > longest_wait_ns) {
    std::fprintf(stderr, "usage: bare_sampler HZ [NS, at most %lu [TRACEPOINT...]]\n",
                 longest_wait_ns);
    return 2;
  }
  const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &all);  // before 5.11 the program counts; later it need not succeed
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);

  const Fd program = load_program(BPF_PROG_TYPE_PERF_EVENT, wait_ns);
  std::vector<Fd> events;
  for (int cpu = 0; cpu < libbpf_num_possible_cpus(); ++cpu) {
    Fd event = sample(cpu, hz, program);
    if (event.valid()) events.push_back(std::move(event));
  }
  if (events.empty()) die("no CPU could be sampled");
  std::vector<Fd> hooks;  // each its own program: the kernel does not run one twice at a place
  for (int i = 3; i < argc; ++i) {
    const Fd hook = load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, 0);
    hooks.emplace_back(bpf_raw_tracepoint_open(argv[i], hook.get()));
    if (!hooks.back().valid()) die(argv[i]);
  }
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}
