// SPDX-License-Identifier: Apache-2.0
#include "attribution/row_names.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "attribution/sources.h"
#include "attribution/usage/usage.h"
#include "attribution/waits/kinds.h"
#include "model/source.h"

namespace pkprof {

namespace {

constexpr bool is_same(pk_basis kernels, Basis ours) {
  return static_cast<int>(kernels) == static_cast<int>(ours);
}
static_assert(is_same(PK_BASIS_OWN, Basis::own) && is_same(PK_BASIS_CONSUMED, Basis::consumed) &&
              is_same(PK_BASIS_OWNER, Basis::owner) &&
              is_same(PK_BASIS_SUBMITTER, Basis::submitter) &&
              is_same(PK_BASIS_DIRTIER, Basis::dirtier) &&
              is_same(PK_BASIS_QUEUER, Basis::queuer) && is_same(PK_BASIS_VOTED, Basis::voted) &&
              is_same(PK_BASIS_PROVISIONAL, Basis::provisional));

constexpr ptrdiff_t telling_frames = 4;  // the outermost ones, that may tell a source

}  // namespace

Row RowNames::without_stacks(const Row& row) {
  Row to = row;
  if (has_user_stack(row.key)) to.key.ustack = 0;
  // What was waited for, or what memory is for, is told by the kernel's stack.
  if (has_kernel_stack(row.key) && is_of_cpu(row.key)) {
    const bool tells_source = row.key.kind == PK_OWN && row.key.syscall == PK_NO_SYSCALL;
    to.key.kstack = tells_source ? stacks_.outermost(row.key.kstack, telling_frames) : 0;
  }
  return to;
}

std::string RowNames::interrupt_source(const pk_key& key, Frames kernel) {
  switch (key.exact_kind) {
    case PK_EXACT_DEVICE:
      return "irq:" + interrupts_.of(key.number);
    case PK_EXACT_TIMER:
      return "irq:local_timer";
    case PK_EXACT_RESCHEDULE:
      return "ipi:reschedule";
    case PK_EXACT_CALL:
      return "ipi:" + (kernel.empty() ? "call_function" : function_name(kernel.front()));
    default:
      return "irq:irq_work";
  }
}

std::string RowNames::function_name(FrameId frame) const {
  const std::string_view name = stacks_.function(frame);
  return std::string(name.substr(0, name.find('.')));  // x.isra.0 is a part of x
}

std::vector<std::string_view> RowNames::functions_on(Frames kernel) const {
  std::vector<std::string_view> functions;
  functions.reserve(kernel.size());
  for (const FrameId frame : kernel) functions.push_back(stacks_.function(frame));
  return functions;
}

std::string RowNames::wait_source(const pk_key& key, Frames kernel) const {
  const auto functions = functions_on(kernel);
  const auto callers = functions_on(has_user_stack(key) ? stacks_.user(key.ustack) : Frames());
  const pk_waker* waker = is_blocked(key) ? wakeups_.at(key.waker) : nullptr;
  return "wait:" + std::string(wait_kind({.part = static_cast<pk_wait_part>(key.wait_part),
                                          .functions = functions,
                                          .futex = key.futex,
                                          .waker = waker,
                                          .callers = callers}));
}

std::string RowNames::source_of(const pk_key& key, const Label& ran_on, Frames kernel) {
  switch (key.kind) {
    case PK_USER:
      return "user";
    case PK_SOFTIRQ:
      return "softirq:" + std::string(softirq_name(key.vec));
    case PK_KTHREAD:
      return "kthread:" + kthread_name(ran_on.comm);
    case PK_WORK:
      return "work:" + work_name(key);
    case PK_IDLING:
      return "idle";
    case PK_INTERRUPT:
      return interrupt_source(key, kernel);
    case PK_STOLEN:
      return std::string(stolen_by_host);
    case PK_CALLS:
      return std::string(counted_calls);
    case PK_WAIT:
      return wait_source(key, kernel);
    case PK_USAGE:
      return usage_source(key, functions_on(kernel));
    default:
      break;
  }
  if (key.syscall != PK_NO_SYSCALL) return "syscall:" + syscall_name(key.syscall, key.compat);
  // How else the task came into the kernel is told by the outermost frames.
  for (auto it = kernel.rbegin(); it != kernel.rend() && it - kernel.rbegin() < telling_frames;
       ++it) {
    const std::string_view name = stacks_.function(*it);
    if (name.starts_with("asm_exc_page_fault")) return "fault";
    if (name.starts_with("asm_exc_")) return "exception:" + std::string(name.substr(8));
    if (name.starts_with("asm_")) return "preempt";  // an interrupt's return found other work
    if (name.starts_with("ret_from_fork")) return "fork";
  }
  return "kernel";
}

// The function of the piece of work that a kernel thread is at.
std::string RowNames::work_name(const pk_key& key) {
  const std::string name = function_name(stacks_.kernel_frame(key.work_function));
  return name.empty() ? "unknown" : name;
}

LabelId RowNames::served_label(Profile& p, const pk_key& key, const Label& ran_on, Frames kernel) {
  Label label;
  if (key.kind == PK_WAIT) return p.label(processes_.label_of(key.served));
  const bool of_kernel = key.kind == PK_KTHREAD ? kthread_of_kernel(kthread_name(ran_on.comm))
                         : key.kind == PK_WORK  ? work_of_kernel(work_name(key))
                         // A kernel thread that nobody gave any work.
                         : key.kind == PK_CALLS && key.ran_on >> 32
                             ? kthread_of_kernel(kthread_name(ran_on.comm))
                         : key.kind == PK_INTERRUPT
                             ? key.exact_kind == PK_EXACT_CALL &&
                                   (kernel.empty() || call_of_kernel(function_name(kernel.front())))
                             : key.served_kind == PK_SERVED_LABEL;
  if (key.served_kind == PK_SERVED_OBJECT) {
    label.kind = of_kernel ? LabelKind::kernel : LabelKind::unclaimed;
    if (!of_kernel) label.reason = reason_name(key.reason);
  } else if (key.served == PK_IDLE) {
    label.kind = LabelKind::idle;
  } else if (key.served == PK_HOST) {
    label.kind = LabelKind::steal;
  } else if (key.served == PK_KERNEL) {
    label.kind = LabelKind::kernel;
    if (!of_kernel && key.kind != PK_INTERRUPT) {
      label.kind = LabelKind::unclaimed;  // it works for someone, and pkprof cannot say whom
      label.reason = reason_name(PK_UNTRACKED);
    }
  } else if (key.served >> 32 == 0) {
    label.kind = of_kernel && key.kind == PK_INTERRUPT ? LabelKind::kernel : LabelKind::unclaimed;
    if (label.kind == LabelKind::unclaimed)
      label.reason = reason_name(static_cast<uint8_t>(key.served - PK_UNCLAIMED));
  } else {
    label = processes_.label_of(key.served);
  }
  return p.label(label);
}

uint32_t RowNames::name_thread(Profile& profile, LabelId process, uint64_t label) const {
  const uint32_t thread = processes_.thread_of(label);
  if (thread) profile.name_thread(process, thread, processes_.thread_name(label));
  return thread;
}

// Of an interrupt, the function that was called; of calls, the function and where it was called.
std::vector<FrameId> RowNames::functions_of(const pk_key& key) {
  std::vector<FrameId> functions;
  if (key.kind != PK_INTERRUPT && key.kind != PK_CALLS) return functions;
  if (key.function) functions.push_back(stacks_.kernel_frame(key.function));
  // A return address may lie behind the function it returns to.
  if (key.kind == PK_CALLS && key.caller) functions.push_back(stacks_.kernel_frame(key.caller - 1));
  return functions;
}

// Of a wait, for whom it was or who had the CPU; of a lock, who held it; of packets, the other end.
Label RowNames::label_of_ran_on(const pk_key& key) const {
  if (key.kind == PK_WAIT && key.wait_part == PK_WAIT_ONGOING)
    return {.kind = LabelKind::unclaimed, .reason = "not over"};
  if (is_blocked(key)) return wakeups_.waited_for(key.waker);
  if (is_of_network(key)) {
    const uint64_t process = peers_.process_of(key.ran_on);
    return process ? processes_.label_of(process) : peers_.label_of(key.ran_on);
  }
  if (key.ran_on >> 32) return processes_.label_of(key.ran_on);
  if (key.kind == PK_WAIT && !key.ran_on)
    return {.kind = LabelKind::unclaimed, .reason = "forgotten"};
  if (key.kind == PK_USAGE && key.usage == PK_LOCK_WAITED && !key.ran_on)
    return {.kind = LabelKind::unclaimed, .reason = std::string(reason_name(PK_UNTRACKED))};
  return {.kind = key.ran_on == PK_IDLE   ? LabelKind::idle
                  : key.ran_on == PK_HOST ? LabelKind::steal
                                          : LabelKind::kernel};
}

RowNames::Told RowNames::tell(Profile& profile, const Row& row, const Selected& selected) {
  const auto is_process = [](uint64_t label) { return label >> 32 != 0; };
  const pk_key& key = row.key;
  Label other_label;
  other_label.kind = LabelKind::other;
  const Label ran = label_of_ran_on(key);
  const bool function_only = key.kind == PK_INTERRUPT || key.kind == PK_CALLS;
  Told told;
  told.functions = functions_of(key);
  told.kernel = function_only ? Frames(told.functions) : stacks_.kernel(key.kstack);
  if (key.kind == PK_WAIT) told.kernel = from_scheduler_on(stacks_, told.kernel);
  if (is_of_kernel_lock(key)) {
    told.lock = lock_names_.of(stacks_.first_address(key.kstack));
    told.kernel = told.kernel.subspan(std::min<size_t>(told.kernel.size(), 1));
  }
  if (key.kind == PK_USAGE) told.kernel = behind_programs(stacks_, told.kernel);
  told.served_other =
      key.served_kind == PK_SERVED_LABEL && is_process(key.served) && !selected(key.served);
  // Kernel threads are of no target, but what runs on them may be for one.
  const bool ran_other =
      is_of_cpu(key) && is_process(key.ran_on) && !ran.kthread && !selected(key.ran_on);
  told.key.ran_on = profile.label(ran_other ? other_label : ran);
  told.key.served =
      told.served_other ? profile.label(other_label) : served_label(profile, key, ran, told.kernel);
  told.source = source_of(key, ran, told.kernel);
  told.key.source = profile.string(told.source);
  told.key.basis = static_cast<Basis>(key.basis);
  const bool to_process = key.served_kind == PK_SERVED_LABEL && is_process(key.served);
  if (key.kind == PK_WAIT) told.key.resource = Resource::wait;
  if (key.kind == PK_USAGE) told.key.resource = resource_of(key);
  told.key.thread =
      ran_other || !has_ran_on(key) ? 0 : name_thread(profile, told.key.ran_on, key.ran_on);
  if (to_process && !told.served_other) {
    told.key.client = clients_.tell(profile, key.client);
    told.key.served_thread = name_thread(profile, told.key.served, key.served);
  }
  return told;
}

}  // namespace pkprof
