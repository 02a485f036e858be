// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_hooks.h"

#include <bpf/libbpf.h>
#include <time.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kernel/object/kernel_object.h"
#include "probe/hook_overhead.h"
#include "probe/interrupt_entry.h"
#include "probe/libbpf_log.h"
#include "probe/polling.h"

namespace pkprof {
namespace {

// What is armed meets its hook before the hooks go.
void let_settle() {
  const timespec settle{0, 1'000'000};
  nanosleep(&settle, nullptr);
}

}  // namespace

HookOverhead KernelHooks::measure_overhead() {
  if (object_.options.hooks)
    object_.skeleton->bss->interrupt_entry_ns = static_cast<uint32_t>(measure_interrupt_entry_ns());
  bpf_link* empty = nullptr;
  const HookOverhead overhead = pkprof::measure_overhead(object_.skeleton->progs.pk_empty, &empty);
  empty_.reset(empty);
  return overhead;
}

Link KernelHooks::attach(const Hook& hook) {
  bpf_program* program = bpf_object__find_program_by_name(object_.skeleton->obj, hook.program);
  LibbpfLog log;
  return Link(std::string_view(bpf_program__section_name(program)).starts_with("raw_tp")
                  ? bpf_program__attach_raw_tracepoint(program, hook.where)
                  : bpf_program__attach(program));
}

// Whether something serves what these options ask for.
bool KernelHooks::is_asked_for(const Need& need) const {
  const KernelSideOptions& options = object_.options;
  return std::ranges::any_of(all_hooks(), [&](const Hook& h) {
    return h.need.name == std::string_view(need.name) && (options.hooks || is_for_clocks(h)) &&
           (h.group != HookGroup::measure || options.measure) &&
           (h.group != HookGroup::calls || options.calls.any()) &&
           (h.group != HookGroup::clients || options.clients) &&
           (h.group != HookGroup::waits || options.waits) &&
           (h.group != HookGroup::usage || options.usage & h.usage);
  });
}

Result<> KernelHooks::attach() {
  std::set<std::string_view> needs_met;
  const bool functions = std::ranges::any_of(object_.hooks, &Hook::function);
  const std::string waits = functions ? what_hooking_waits_for() : "";
  for (const Hook* hook : object_.hooks) {
    Link link;
    errno = 0;
    if (!hook->function || waits.empty()) link = attach(*hook);
    if (!link && is_shortage(errno))
      return fail(LibbpfLog().explain(std::string("attaching ") + hook->program, errno));
    if (!link) {
      object_.refused.insert(hook->program);
      continue;
    }
    attached_.push_back({hook, object_.program_of(*hook), std::move(link)});
    needs_met.insert(hook->need.name);
  }
  empty_.reset();
  // Without hooks there is no pause to wait for, either.
  windows_ = 1;
  object_.skeleton->bss->window = windows_;
  for (pk_cpu& cpu : object_.per_cpu()) cpu.sampler.window = windows_;
  for (const Need& need : all_needs()) {
    if (!is_asked_for(need)) continue;
    std::string how;
    for (const Hook* hook : object_.hooks)
      if (std::string_view(hook->need.name) == need.name &&
          !object_.refused.contains(hook->program))
        how += (how.empty() ? "" : ", ") + std::string(hook->where);
    const bool works = needs_met.contains(need.name);
    if (!works) how = waits.empty() ? "this kernel has no means for it" : waits;
    note({need.name, works, std::move(how), need.costs});
  }
  return {};
}

void KernelHooks::detach() {
  object_.skeleton->bss->window = 0;
  let_settle();
  for (Attached& a : attached_)
    if (a.hook->group != HookGroup::lasting) a.link.reset();
}

size_t KernelHooks::attach_again() {
  auto& bss = *object_.skeleton->bss;
  size_t failed = 0;
  for (Attached& a : attached_) {
    if (a.link || a.hook->rest & bss.resting) continue;
    a.link = attach(*a.hook);
    if (!a.link) ++failed;
  }
  bss.window = ++windows_;
  return failed;
}

bool KernelHooks::is_attached(std::string_view program) const {
  return std::ranges::any_of(attached_,
                             [&](const Attached& a) { return program == a.hook->program; });
}

// Without hooks that name sockets, the socket named last is not the packet's that the stack is at.
uint32_t KernelHooks::may_rest(uint32_t which) const {
  const bool named = is_attached("pk_tcp_probe") &&
                     (is_attached("pk_sk_data_ready") || is_attached("pk_sock_def_readable"));
  if (!named) which &= ~static_cast<uint32_t>(PK_REST_PACKETS);
  // Whose packet wakes a thread, and whom the bytes of one are for, only they say.
  if (object_.options.waits || object_.options.usage & PK_USAGE_NET) return 0;
  // Clients' messages are seen by those on sending and taking.
  constexpr uint32_t with_clients = PK_REST_PACKETS | PK_REST_ARRIVALS;
  return which & (object_.options.clients ? with_clients : ~uint32_t{PK_REST_ARRIVALS});
}

uint32_t KernelHooks::resting() const {
  return object_.skeleton->bss->resting;
}

size_t KernelHooks::rest(uint32_t which) {
  auto& bss = *object_.skeleton->bss;
  const uint32_t resting = may_rest(which);
  size_t failed = 0;
  for (Attached& a : attached_) {
    if (!(a.hook->rest & bss.resting & ~resting)) continue;
    a.link = attach(*a.hook);
    if (!a.link) ++failed;
  }
  bss.resting = resting;
  let_settle();
  for (Attached& a : attached_)
    if (a.hook->rest & resting) a.link.reset();
  return failed;
}

std::vector<int> KernelHooks::programs(HookGroup group) const {
  std::set<std::string_view> seen;
  std::vector<int> fds;
  for (const Fd& fd : pinned_[static_cast<size_t>(group)]) fds.push_back(fd.get());
  for (const Attached& a : attached_)
    if (a.hook->group == group && seen.insert(a.hook->program).second) fds.push_back(a.program);
  return fds;
}

std::vector<uint64_t> KernelHooks::runs(HookGroup group) const {
  std::vector<uint64_t> runs;
  for (const pk_cpu& cpu : object_.per_cpu())
    runs.push_back(cpu.hot.runs[static_cast<size_t>(group)]);
  return runs;
}

std::vector<bpf_link*> KernelHooks::links() const {
  std::vector<bpf_link*> all;
  all.reserve(attached_.size());
  for (const Attached& a : attached_) all.push_back(a.link.get());
  return all;
}

void KernelHooks::use_pinned(HookGroup group, std::vector<Fd> programs) {
  pinned_[static_cast<size_t>(group)] = std::move(programs);
}

}  // namespace pkprof
