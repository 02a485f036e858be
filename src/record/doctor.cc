// SPDX-License-Identifier: Apache-2.0
#include "record/doctor.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "debox/side.h"
#include "kernel/kernel_side.h"
#include "kernel/kernel_symbols.h"
#include "probe/pid_namespace.h"
#include "process/callers_limits.h"
#include "process/cgroups.h"
#include "process/sideband.h"
#include "unwind/unwind_table.h"

namespace pkprof {
namespace {

std::string read_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Bit of the effective capabilities of this process.
bool has_capability(int bit) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("CapEff:")) return std::strtoull(line.c_str() + 7, nullptr, 16) >> bit & 1;
  return false;
}

constexpr int cap_sys_admin = 21;
constexpr int cap_perfmon = 38;
constexpr int cap_bpf = 39;
constexpr int cap_checkpoint_restore = 40;

Capability privileges() {
  Capability c{"privileges", true, "", "nothing can be recorded; reports of files still work"};
  const bool admin = has_capability(cap_sys_admin);
  const bool bpf = has_capability(cap_bpf);
  const bool perfmon = has_capability(cap_perfmon);
  if (admin) {
    c.how = geteuid() == 0 ? "root" : "CAP_SYS_ADMIN";
  } else if (bpf && perfmon) {
    c.how = "CAP_BPF and CAP_PERFMON";
  } else {
    c.works = false;
    c.how = bpf       ? "CAP_PERFMON is missing"
            : perfmon ? "CAP_BPF is missing"
                      : "no CAP_BPF, no CAP_PERFMON";
    c.how += ": run as root, or `setcap cap_bpf,cap_perfmon,cap_syslog+ep` on the binary";
  }
  return c;
}

Capability lockdown() {
  Capability c{"kernel lockdown", true, "not locked down", "kernel memory cannot be read"};
  const std::string state = read_line("/sys/kernel/security/lockdown");
  if (state.find("[integrity]") != std::string::npos) c.how = "integrity: BPF may read";
  if (state.find("[confidentiality]") != std::string::npos) {
    c.works = false;
    c.how = "confidentiality: BPF may not read kernel memory";
  }
  return c;
}

// In a container of its own numbers (a PID namespace).
Capability numbers() {
  const auto found = pid_namespace();
  Capability c{"processes' numbers", found.has_value(), "the machine's own",
               "nothing can be recorded"};
  if (!found)
    c.how = found.error().message;
  else if (*found)
    c.how = "this PID namespace's; processes outside it have the machine's, with host: before them";
  return c;
}

// By a table that is made of our own program and handed over.
Capability user_stacks(const KernelSide& side) {
  Capability c{"stacks of user code", false, "",
               "stacks of programs without frame pointers are cut"};
  auto table = UnwindTable::read(Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  if (!table) {
    c.how = table.error().message;
    return c;
  }
  constexpr uint64_t no_file = UINT64_MAX;
  const auto put = side.unwind().put(no_file, table->blocks(),
                                     [&table](auto blocks) { table->lay_out(blocks); });
  side.unwind().remove(no_file);
  c.works = put.has_value();
  c.how = put ? "tables of .eh_frame" : put.error().message;
  if (put && !has_capability(cap_sys_admin) && !has_capability(cap_checkpoint_restore))
    c.how += "; files by name alone (CAP_CHECKPOINT_RESTORE is missing)";
  return c;
}

void record_briefly(Diagnosis& d, const KernelFacts& facts, const KernelSymbols* symbols) {
  Capability sampling{"sampling", false, "", "nothing can be recorded"};
  KernelSideOptions options;
  options.measure = options.mappings = options.unwind = true;
  options.clients = PK_CLIENTS_WANTED;
  options.waits = true;
  options.usage = UINT32_MAX;
  options.calls = find_call_facilities(facts);
  auto loaded = LoadedKernel::load(facts, options);
  const KnownFunctions functions = symbols ? find_functions(*symbols) : KnownFunctions{};
  auto side = loaded ? std::move(*loaded).attach(symbols ? &functions : nullptr)
                     : std::unexpected(loaded.error());
  Result<> up = side ? Result<>() : std::unexpected(side.error());
  if (up) up = side->enable();
  if (!up) {
    sampling.how = up.error().message;
    d.capabilities.push_back(sampling);
    return;
  }
  const uint64_t end = monotonic_ns() + 20'000'000;
  while (monotonic_ns() < end) {  // something to sample
  }
  side->disable(WhileOff::clock_goes_on);
  sampling.works = side->stats().samples > 0;
  sampling.how = sampling.works ? "cpu-clock on " + std::to_string(side->clocks().cpus(0)) + " CPUs"
                                : "the sampling clock gave no sample";
  d.can_record = sampling.works;
  d.capabilities.push_back(sampling);
  d.capabilities.insert(d.capabilities.end(), side->hooks().capabilities().begin(),
                        side->hooks().capabilities().end());
  d.capabilities.push_back(user_stacks(*side));
  d.capabilities.push_back({"socket owners", side->owners().were_told(), "",
                            "sockets that nobody reads stay unclaimed"});
  Capability& owners = d.capabilities.back();
  owners.how =
      owners.works ? "task_file iterator" : "this kernel has no task_file iterator for BPF";
  d.capabilities.push_back(calls_capability(options.calls));
  const bool offsets = facts.percpu_offset("kstat") && facts.percpu_offset("runqueues") &&
                       facts.preempt_count_offset();
  d.capabilities.push_back({"softirq runs told apart", offsets,
                            offsets ? "per-CPU counters" : "not in this kernel's type information",
                            "a few samples may be charged to the next run's process"});
}

Capability system_calls(const KernelFacts& facts, const KernelSymbols* symbols) {
  Capability c{"records of system calls", false, "", "no pkprof debox"};
  auto side = DeboxSide::load(facts, {.symbols = symbols, .traced = {}});
  const Result<> up = side ? side->attach() : std::unexpected(side.error());
  c.works = up.has_value();
  c.how = up ? "tracepoints on system calls, sleeping and waking" : up.error().message;
  return c;
}

}  // namespace

Diagnosis diagnose() {
  Diagnosis d;
  raise_limits();
  d.capabilities.push_back(privileges());
  d.capabilities.push_back(lockdown());
  d.capabilities.push_back(numbers());
  auto facts = KernelFacts::read();
  d.capabilities.push_back({"kernel type information", facts.has_value(),
                            facts ? "/sys/kernel/btf/vmlinux" : facts.error().message,
                            "nothing can be recorded"});
  auto plain = KernelSymbols::from_proc();
  auto symbols = plain ? std::move(plain) : load_kernel_symbols();
  const std::string how =
      symbols ? std::to_string(symbols->size()) + " text symbols" : symbols.error().message;
  d.capabilities.push_back(
      {"kernel symbols", symbols.has_value(), how,
       "kernel frames are bare addresses, and softirq time is not attributed"});
  if (facts) record_briefly(d, *facts, symbols ? &*symbols : nullptr);
  if (facts) d.capabilities.push_back(system_calls(*facts, symbols ? &*symbols : nullptr));
  auto band = Sideband::open(1, Sideband::Maps::no);
  d.capabilities.push_back({"processes that end early", band.has_value(),
                            band ? "perf exec, fork and exit events" : band.error().message,
                            "programs that a process runs one after the other are not told apart"});
  const std::string cgroups = cgroup2_mount();
  d.capabilities.push_back({"cgroups", !cgroups.empty(),
                            cgroups.empty() ? "no cgroup v2 hierarchy is mounted" : cgroups,
                            "no --cgroup, no cgroup names"});
  return d;
}

}  // namespace pkprof
