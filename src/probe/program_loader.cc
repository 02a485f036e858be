// SPDX-License-Identifier: Apache-2.0
#include "probe/program_loader.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/fd.h"

namespace pkprof {
namespace {

// The cookies of the handlers.
enum Kind : long { perf_event, raw_tracepoint, typed_tracepoint, iterator };

// That of this thread, which has libbpf load an object.
thread_local ProgramLoader* at_work = nullptr;

constexpr const char* license = "Dual BSD/GPL";

bpf_prog_type type_of(long kind) {
  if (kind == perf_event) return BPF_PROG_TYPE_PERF_EVENT;
  if (kind == raw_tracepoint) return BPF_PROG_TYPE_RAW_TRACEPOINT;
  return BPF_PROG_TYPE_TRACING;
}

// What stands behind the slash.
const char* target_of(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  const size_t slash = section.find('/');
  return slash == std::string_view::npos ? "" : section.data() + slash + 1;
}

int usable_cpus() {
  constexpr int most = 8;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  return std::clamp(CPU_COUNT(&set), 1, most);
}

}  // namespace

struct ProgramLoader::Job {
  bpf_program* program;
  bpf_prog_type type;
  std::vector<bpf_insn> code;
  bpf_prog_load_opts options;
  int error = 0;

  int load() { return bpf_prog_load(type, name(), license, code.data(), code.size(), &options); }
  [[nodiscard]] const char* name() const { return bpf_program__name(program); }

  void run() {
    const Fd loaded(load());
    if (!loaded.valid() || dup3(loaded.get(), bpf_program__fd(program), O_CLOEXEC) < 0)
      error = errno;
  }

  // What the verifier says of it, as libbpf would print it.
  void explain() {
    if (!getenv("PKPROF_DEBUG")) return;
    std::string log(16 << 20, '\0');
    options.log_buf = log.data();
    options.log_size = static_cast<uint32_t>(log.size());
    options.log_level = 1;
    const Fd unwanted(load());
    fprintf(stderr, "%s: refused\n%s\n", name(), log.c_str());
  }
};

struct ProgramLoader::Callbacks {
  static int prepare(bpf_program* program, bpf_prog_load_opts* options, long kind) {
    if (!at_work) return prepare_for_libbpf(program, options, kind);
    Job job{.program = program, .type = type_of(kind), .code = {}, .options = *options};
    const std::span code(bpf_program__insns(program), bpf_program__insn_cnt(program));
    job.code.assign(code.begin(), code.end());
    if (job.type == BPF_PROG_TYPE_TRACING) {
      job.options.attach_btf_id = at_work->facts_.attach_id(bpf_program__section_name(program));
      if (!job.options.attach_btf_id) job.error = ESRCH;
    }
    at_work->jobs_.push_back(std::move(job));
    // It is of a kind that needs nothing.
    options->expected_attach_type = {};
    options->func_info_cnt = 0;
    options->func_info = nullptr;
    options->line_info_cnt = 0;
    options->line_info = nullptr;
    bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    return bpf_program__set_insns(program, nothing, std::size(nothing));
  }

  // Where nobody is at work libbpf loads the program itself, one of a few.
  static int prepare_for_libbpf(bpf_program* program, bpf_prog_load_opts* options, long kind) {
    if (type_of(kind) != BPF_PROG_TYPE_TRACING) return 0;
    const int id =
        libbpf_find_vmlinux_btf_id(target_of(program), bpf_program__expected_attach_type(program));
    if (id < 0) return id;
    options->attach_btf_id = static_cast<uint32_t>(id);
    return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
  }

  static int attach(const bpf_program* program, long kind, bpf_link** link) {
    if (kind == raw_tracepoint)
      *link = bpf_program__attach_raw_tracepoint(program, target_of(program));
    else if (kind == iterator)
      *link = bpf_program__attach_iter(program, nullptr);
    else
      *link = bpf_program__attach_trace(program);
    return *link ? 0 : -errno;
  }
};

// Of typed programs libbpf is told another type, or it would read the kernel's types for them.
void ProgramLoader::take_over() {
  static std::once_flag done;
  std::call_once(done, [] {
    const auto handle = [](const char* section, long kind, bpf_prog_type type,
                           bpf_attach_type attach) {
      LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = kind,
                  .prog_prepare_load_fn = Callbacks::prepare,
                  .prog_attach_fn = kind == perf_event ? nullptr : Callbacks::attach);
      libbpf_register_prog_handler(section, type, attach, &opts);
    };
    constexpr bpf_attach_type none{};
    handle("perf_event", perf_event, BPF_PROG_TYPE_PERF_EVENT, none);
    handle("raw_tp+", raw_tracepoint, BPF_PROG_TYPE_RAW_TRACEPOINT, none);
    handle("tp_btf+", typed_tracepoint, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP);
    handle("iter+", iterator, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER);
  });
}

ProgramLoader::ProgramLoader(const KernelFacts& facts) : facts_(facts) {
  at_work = this;
}

ProgramLoader::~ProgramLoader() {
  at_work = nullptr;
}

std::vector<ProgramLoader::Refused> ProgramLoader::load() {
  // The longest first, so that none of them is left for the end.
  std::ranges::sort(jobs_, std::greater(), [](const Job& job) { return job.code.size(); });
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < jobs_.size(); i = next++)
      if (!jobs_[i].error) jobs_[i].run();
  };
  std::vector<std::jthread> others;
  try {
    for (int i = 1; i < usable_cpus(); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // Fewer will do.
  }
  work();
  others.clear();
  std::vector<Refused> refused;
  for (Job& job : jobs_) {
    if (!job.error) continue;
    job.explain();
    refused.push_back({job.name(), job.error});
  }
  return refused;
}

}  // namespace pkprof
