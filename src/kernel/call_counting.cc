// SPDX-License-Identifier: Apache-2.0
#include "kernel/call_counting.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "calls/function_links.h"
#include "kernel/object/kernel_object.h"
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
  key.function = call.function;
  key.caller = call.caller;
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

Result<> CallCounting::map() {
  if (!object_.options.calls.any()) return {};
  const bpf_map* map = object_.skeleton->maps.calls;
  if (auto r = calls_.map(bpf_map__fd(map), bpf_map__max_entries(map)); !r) return r;
  map = object_.skeleton->maps.waiting_calls;
  return waiting_.map(bpf_map__fd(map), bpf_map__max_entries(map));
}

bool CallCounting::attach_to(const KernelFacts& facts, const CallTarget& target) {
  const auto& programs = object_.skeleton->progs;
  const bpf_program* fitted =
      target.ahead ? programs.pk_call_fentry_ahead : programs.pk_call_fentry;
  auto attached = attach_to_function(facts.types(), target, fitted, false);
  if (!attached) return false;
  programs_.push_back(std::move(attached->program));
  links_.push_back(std::move(attached->link));
  return true;
}

size_t CallCounting::attach_to_many(bpf_program* program,
                                    std::span<const CallTarget* const> targets,
                                    std::vector<std::string>& left_out, int& tries) {
  std::vector<uint64_t> addresses;
  addresses.reserve(targets.size());
  for (const CallTarget* target : targets) addresses.push_back(target->address);
  FunctionLinks attached = attach_to_functions(bpf_program__fd(program), addresses, false, tries);
  for (Fd& link : attached.links) links_.push_back(std::move(link));
  for (const size_t i : attached.refused) left_out.push_back(targets[i]->name);
  return targets.size() - attached.refused.size();
}

CallCounting::Attached CallCounting::attach(const KernelFacts& facts,
                                            std::span<const CallTarget> targets) {
  const LibbpfLog quiet;
  Attached attached;
  const CallFacilities& by = object_.options.calls;
  const bool each = by.each && (targets.size() <= most_each || !by.many);
  std::vector<const CallTarget*> many[2];
  std::unordered_set<std::string> traceable;
  if (targets.size() > most_each) traceable = traceable_functions();
  for (const CallTarget& target : targets) {
    const auto is_traceable = [&](const std::string& name) { return traceable.contains(name); };
    if (!traceable.empty() && !is_traceable(target.name) &&
        std::ranges::none_of(target.names, is_traceable))
      attached.refused.push_back(target.name);
    else if (each && attached.functions < most_each_alone && attach_to(facts, target))
      ++attached.functions;
    else
      many[target.ahead ? 1 : 0].push_back(&target);
  }
  if (attached.functions) attached.how = "fentry";
  size_t at_once = 0;
  int tries = most_tries;
  for (const bool ahead : {false, true}) {
    const auto& programs = object_.skeleton->progs;
    bpf_program* program = ahead ? programs.pk_call_multi_ahead : programs.pk_call_multi;
    if (by.many && bpf_program__fd(program) >= 0) {
      const size_t now = attach_to_many(program, many[ahead], attached.refused, tries);
      if (now) programs_.emplace_back(dup(bpf_program__fd(program)));
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

void CallCounting::count(bool on) {
  if (on) missed_before_ = missed();
  object_.skeleton->bss->counting = on;
}

void CallCounting::detach() {
  links_.clear();
}

std::vector<int> CallCounting::programs() const {
  std::vector<int> fds;
  fds.reserve(programs_.size());
  for (const Fd& program : programs_) fds.push_back(program.get());
  return fds;
}

uint64_t CallCounting::missed() const {
  uint64_t missed = 0;
  for (const Fd& program : programs_) missed += missed_by(program.get());
  return missed - missed_before_;
}

void CallCounting::take(Tables& out) {
  const auto take = [&out](const pk_call& call) {
    out.counts.emplace_back(key_of(call), pk_count{0, call.count});
  };
  for (pk_call& call : calls_.entries()) {
    if (!std::atomic_ref(call.count).load(std::memory_order_relaxed)) continue;
    with_lock(call.lock, [&] {
      take(call);
      call.count = 0;
    });
  }
  if (object_.skeleton->bss->counting) return;
  for (pk_waiting_calls& pending : waiting_.entries()) {
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
