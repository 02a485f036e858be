// SPDX-License-Identifier: Apache-2.0
#include "probe/facts.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/utsname.h>

#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

// Byte offset of a member, also inside anonymous structs and unions; -1 when there is none.
int64_t member_offset(const btf* b, uint32_t type, std::string_view name, int depth) {
  const btf_type* t = btf__type_by_id(b, type);
  while (t && (btf_is_mod(t) || btf_is_typedef(t))) t = btf__type_by_id(b, t->type);
  if (!t || !btf_is_composite(t) || depth > 4) return -1;
  const btf_member* m = btf_members(t);
  for (uint16_t i = 0; i < btf_vlen(t); ++i, ++m) {
    const int64_t at = btf_member_bit_offset(t, i) / 8;
    const std::string_view found = btf__name_by_offset(b, m->name_off);
    if (found == name) return at;
    if (!found.empty()) continue;
    const int64_t inner = member_offset(b, m->type, name, depth + 1);
    if (inner >= 0) return at + inner;
  }
  return -1;
}

}  // namespace

void KernelFacts::Free::operator()(btf* b) const {
  btf__free(b);
}

Result<KernelFacts> KernelFacts::read() {
  const LibbpfLog quiet;
  KernelFacts facts;
  facts.btf_.reset(btf__load_vmlinux_btf());
  if (!facts.btf_) {
    return fail_errno(
        "no kernel type information (/sys/kernel/btf/vmlinux): pkprof needs a kernel built with "
        "CONFIG_DEBUG_INFO_BTF");
  }
  // Looking for a name in the BTF goes through all of it: once for all names.
  btf* b = facts.btf_.get();
  constexpr std::string_view trace = "btf_trace_";
  const uint32_t types = btf__type_cnt(b);
  for (uint32_t id = 1; id < types; ++id) {
    const btf_type* t = btf__type_by_id(b, id);
    if (!btf_is_typedef(t) && !btf_is_datasec(t)) continue;
    const std::string_view name = btf__name_by_offset(b, t->name_off);
    if (btf_is_datasec(t) && name == ".data..percpu")
      facts.percpu_ = id;
    else if (btf_is_typedef(t) && name.starts_with(trace))
      facts.tracepoints_.emplace(name.substr(trace.size()), id);
  }
  return facts;
}

int KernelFacts::tracepoint_args(std::string_view name) const {
  const auto found = tracepoints_.find(name);
  if (found == tracepoints_.end()) return -1;
  const btf_type* t = btf__type_by_id(btf_.get(), found->second);  // typedef
  t = t ? btf__type_by_id(btf_.get(), t->type) : nullptr;          // pointer
  t = t ? btf__type_by_id(btf_.get(), t->type) : nullptr;          // function
  if (!t || !btf_is_func_proto(t) || btf_vlen(t) == 0) return -1;
  return btf_vlen(t) - 1;  // the first is the tracepoint's own
}

bool KernelFacts::has_function(std::string_view name) const {
  return btf__find_by_name_kind(btf_.get(), std::string(name).c_str(), BTF_KIND_FUNC) > 0;
}

uint32_t KernelFacts::attach_id(std::string_view section) const {
  const size_t slash = section.find('/');
  if (slash == std::string_view::npos) return 0;
  const std::string_view name = section.substr(slash + 1);
  if (section.starts_with("tp_btf/")) {
    const auto found = tracepoints_.find(name);
    return found == tracepoints_.end() ? 0 : found->second;
  }
  const std::string function = "bpf_iter_" + std::string(name);
  const int id = btf__find_by_name_kind(btf_.get(), function.c_str(), BTF_KIND_FUNC);
  return id > 0 ? static_cast<uint32_t>(id) : 0;
}

uint64_t KernelFacts::percpu_offset(std::string_view name, std::string_view member) const {
  if (!percpu_) return 0;
  const btf_type* section = btf__type_by_id(btf_.get(), percpu_);
  const btf_var_secinfo* var = btf_var_secinfos(section);
  for (uint32_t i = 0; i < btf_vlen(section); ++i, ++var) {
    const btf_type* t = btf__type_by_id(btf_.get(), var->type);
    if (!t || name != btf__name_by_offset(btf_.get(), t->name_off)) continue;
    if (member.empty()) return var->offset;
    const int64_t in_struct = member_offset(btf_.get(), t->type, member, 0);
    return in_struct < 0 ? 0 : var->offset + static_cast<uint64_t>(in_struct);
  }
  return 0;
}

uint64_t KernelFacts::preempt_count_offset() const {
  const uint64_t own = percpu_offset("__preempt_count");
  return own ? own : percpu_offset("pcpu_hot", "preempt_count");
}

uint64_t KernelFacts::softirq_pending_offset() const {
  const uint64_t own = percpu_offset("__softirq_pending");
  const uint64_t hot = own ? own : percpu_offset("pcpu_hot", "softirq_pending");  // 6.2 to 6.14
  return hot ? hot : percpu_offset("irq_stat", "__softirq_pending");
}

std::string kernel_release() {
  utsname u{};
  return uname(&u) == 0 ? u.release : "";
}

std::string host_name() {
  utsname u{};
  return uname(&u) == 0 ? u.nodename : "";
}

}  // namespace pkprof
