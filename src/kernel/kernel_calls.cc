// SPDX-License-Identifier: Apache-2.0
// KernelSide: counting calls of functions.
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>

#include "calls/function_links.h"
#include "kernel/kernel_side_impl.h"
#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

// Attaching them one by one takes as long as a user waits; of more, all are done by one program
// where the kernel has that, or a number that takes a minute.
constexpr size_t most_each = 64;
constexpr size_t most_each_alone = 2000;

// To find those that cannot be attached to among others.
constexpr int most_tries = 200;

pk_key key_of(const pk_call& call) {
  pk_key key{};
  key.served = call.served;
  key.kstack = call.function;
  key.ustack = call.caller;
  key.syscall = PK_NO_SYSCALL;
  key.kind = PK_CALLS;
  key.vec = PK_VEC_NONE;
  key.basis = PK_CALL_BASIS(call.how);
  key.reason = PK_CALL_REASON(call.how);
  if (call.served & PK_OBJECT)
    key.served_kind = PK_SERVED_OBJECT;
  else if (key.basis == PK_BASIS_OWN && call.served >> 32)
    key.ran_on = call.served;
  if (call.how & PK_CALL_OF_THREAD) key.served = PK_KERNEL;
  return key;
}

uint64_t missed_by(int program) {
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  return bpf_obj_get_info_by_fd(program, &info, &size) ? 0 : info.recursion_misses;
}

}  // namespace

Result<> KernelSide::Impl::map_calls() {
  if (!options.calls.any()) return {};
  const bpf_map* map = skeleton->maps.calls;
  if (auto r = calls.map(bpf_map__fd(map), bpf_map__max_entries(map)); !r) return r;
  map = skeleton->maps.waiting_calls;
  return waiting_calls.map(bpf_map__fd(map), bpf_map__max_entries(map));
}

bool KernelSide::Impl::attach_call(const KernelFacts& facts, const CallTarget& target) {
  const bpf_program* fitted =
      target.ahead ? skeleton->progs.pk_call_fentry_ahead : skeleton->progs.pk_call_fentry;
  auto attached = attach_to_function(facts.types(), target, fitted, false);
  if (!attached) return false;
  call_programs.push_back(std::move(attached->program));
  call_links.push_back(std::move(attached->link));
  return true;
}

size_t KernelSide::Impl::attach_calls(bpf_program* program,
                                      std::span<const CallTarget* const> targets,
                                      std::vector<std::string>& left_out, int& tries) {
  std::vector<uint64_t> addresses;
  addresses.reserve(targets.size());
  for (const CallTarget* target : targets) addresses.push_back(target->address);
  FunctionLinks attached = attach_to_functions(bpf_program__fd(program), addresses, false, tries);
  for (Fd& link : attached.links) call_links.push_back(std::move(link));
  for (const size_t i : attached.refused) left_out.push_back(targets[i]->name);
  return targets.size() - attached.refused.size();
}

KernelSide::CallsAttached KernelSide::attach_calls(const KernelFacts& facts,
                                                   std::span<const CallTarget> targets) {
  Impl& m = *impl_;
  const LibbpfLog quiet;
  CallsAttached attached;
  const CallFacilities& by = m.options.calls;
  const bool each = by.each && (targets.size() <= most_each || !by.many);
  std::vector<const CallTarget*> many[2];
  std::unordered_set<std::string> traceable;
  if (targets.size() > most_each) traceable = traceable_functions();
  for (const CallTarget& target : targets) {
    const auto is_traceable = [&](const std::string& name) { return traceable.contains(name); };
    if (!traceable.empty() && !is_traceable(target.name) &&
        std::ranges::none_of(target.names, is_traceable))
      attached.refused.push_back(target.name);
    else if (each && attached.functions < most_each_alone && m.attach_call(facts, target))
      ++attached.functions;
    else
      many[target.ahead ? 1 : 0].push_back(&target);
  }
  if (attached.functions) attached.how = "fentry";
  size_t at_once = 0;
  int tries = most_tries;
  for (const bool ahead : {false, true}) {
    bpf_program* program =
        ahead ? m.skeleton->progs.pk_call_multi_ahead : m.skeleton->progs.pk_call_multi;
    if (by.many && bpf_program__fd(program) >= 0) {
      const size_t now = m.attach_calls(program, many[ahead], attached.refused, tries);
      if (now) m.call_programs.emplace_back(dup(bpf_program__fd(program)));
      at_once += now;
    } else {
      for (const CallTarget* target : many[ahead]) attached.refused.push_back(target->name);
    }
  }
  if (at_once) attached.how += (attached.how.empty() ? "" : " and ") + std::string("kprobe.multi");
  attached.functions += at_once;
  std::ranges::sort(attached.refused);
  return attached;
}

void KernelSide::count_calls(bool on) {
  if (on) impl_->missed_before = missed_calls();
  impl_->skeleton->bss->counting = on;
}

void KernelSide::detach_calls() {
  impl_->call_links.clear();
}

uint64_t KernelSide::missed_calls() const {
  uint64_t missed = 0;
  for (const Fd& program : impl_->call_programs) missed += missed_by(program.get());
  return missed - impl_->missed_before;
}

// What CPUs keep, and, when counting is over, what waits for a hook that will not come any more.
void KernelSide::Impl::take_calls(Tables& out) {
  const auto take = [&out](const pk_call& call) {
    out.counts.emplace_back(key_of(call), pk_count{0, call.count});
  };
  for (pk_call& call : calls.entries()) {
    if (!std::atomic_ref(call.count).load(std::memory_order_relaxed)) continue;
    with_lock(call.lock, [&] {
      take(call);
      call.count = 0;
    });
  }
  if (skeleton->bss->counting) return;
  for (pk_waiting_calls& pending : waiting_calls.entries()) {
    pk_call call{};
    call.served = uint64_t{PK_UNCLAIMED} + PK_EXPIRED;
    call.how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
    call.count = 1;
    while (pending.end - pending.start - 1 < PK_CALLS_PENDING) {
      const auto& waits = pending.call[pending.start++ % PK_CALLS_PENDING];
      call.function = waits.function;
      call.caller = waits.caller;
      take(call);
    }
  }
}

}  // namespace pkprof
