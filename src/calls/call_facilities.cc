// SPDX-License-Identifier: Apache-2.0
#include "calls/call_facilities.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include <cerrno>

#include "base/fd.h"
#include "probe/libbpf_log.h"
#include "probe/polling.h"

namespace pkprof {
namespace {

// In every kernel that has tracing; nobody calls it but who tests BPF.
constexpr const char* trial_function = "bpf_fentry_test1";

constexpr const char* license = "Dual BSD/GPL";

// A program that does nothing.
constexpr bpf_insn nothing[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};

// 0, or why not.
int try_each(const KernelFacts& facts) {
  const int id = btf__find_by_name_kind(facts.types(), trial_function, BTF_KIND_FUNC);
  if (id <= 0) return ENOENT;
  LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = BPF_TRACE_FENTRY,
              .attach_btf_id = static_cast<uint32_t>(id));
  const Fd program(bpf_prog_load(BPF_PROG_TYPE_TRACING, "pk_trial", license, nothing,
                                 std::size(nothing), &load));
  if (!program.valid()) return errno;
  const Fd link(bpf_link_create(program.get(), 0, BPF_TRACE_FENTRY, nullptr));
  return link.valid() ? 0 : errno;
}

int try_many() {
  LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = BPF_TRACE_KPROBE_MULTI);
  const Fd program(
      bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pk_trial", license, nothing, std::size(nothing), &load));
  if (!program.valid()) return errno;
  const char* names[] = {trial_function};
  LIBBPF_OPTS(bpf_link_create_opts, create);
  create.kprobe_multi.cnt = 1;
  create.kprobe_multi.syms = names;
  const Fd link(bpf_link_create(program.get(), 0, BPF_TRACE_KPROBE_MULTI, &create));
  return link.valid() ? 0 : errno;
}

std::string in_words(int error) {
  if (error == EPERM || error == EACCES) return "not permitted";
  if (error == EOPNOTSUPP || error == EINVAL || error == ENOTSUP) return "not in this kernel";
  return std::strerror(error);
}

}  // namespace

CallFacilities find_call_facilities(const KernelFacts& facts) {
  const LibbpfLog quiet;
  CallFacilities found;
  if (!facts.preempt_count_offset() || !facts.percpu_offset("runqueues")) {
    found.refused = "this kernel does not tell what interrupts what (preempt_count)";
    return found;
  }
  found.refused = what_hooking_waits_for();
  if (!found.refused.empty()) return found;
  const int each = try_each(facts);
  const int many = try_many();
  found.each = each == 0;
  found.many = many == 0;
  if (!found.any())
    found.refused =
        "this kernel lets nothing be attached to its functions (fentry: " + in_words(each) +
        ", kprobe.multi: " + in_words(many) + ")";
  return found;
}

Capability calls_capability(const CallFacilities& facilities) {
  std::string how = facilities.refused;
  if (facilities.any())
    how = !facilities.many ? "fentry" : !facilities.each ? "kprobe.multi" : "fentry, kprobe.multi";
  return {"counting calls", facilities.any(), how, "no pkprof calls"};
}

}  // namespace pkprof
