// SPDX-License-Identifier: Apache-2.0
#include "collect/recorder.h"

#include <span>

#include "collect/sources.h"

namespace pkprof {

namespace {

constexpr uint64_t enough_samples = 10;  // to charge others by

Row row_of(const pk_charge& charge) {
  Row row{};
  row.key.ran_on = charge.ran_on;
  row.key.kstack = charge.kstack;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.kind = charge.kind;
  row.key.vec = charge.vec;
  return row;
}

}  // namespace

Recorder::Recorder(const KernelSymbols* kernel, UserSymbols& user, Processes& processes,
                   uint64_t period_ns)
    : kernel_(kernel), user_(user), processes_(processes), spread_(enough_samples * period_ns) {}

void Recorder::count(const Row& row, const pk_count& count) {
  pk_count& sum = rows_[row];
  sum.ns += count.ns;
  sum.samples += count.samples;
}

void Recorder::add(const KernelSide::Tables& tables) {
  for (const auto& [id, stack] : tables.stacks) {
    if (stacks_.contains(id)) continue;
    const size_t depth = std::min<size_t>(stack.depth, PK_MAX_DEPTH);
    stacks_.emplace(id, std::vector<uint64_t>(stack.ip, stack.ip + depth));
  }
  for (const auto& [key, count] : tables.counts) {
    Row row{key, 0};
    if (key.ustack && key.kind != PK_WORK) {
      // The user stack is the consumer's, and it is the one who is served.
      row.image = processes_.image_of(key.served, key.exec_id);
      (void)user_frames(key.ustack, row.image);
    }
    row.key.exec_id = 0;
    // A sleeper whose timer went off may never have been sampled; all others were told.
    if (key.served_kind == PK_SERVED_LABEL && key.basis == PK_BASIS_OWNER && key.served >> 32)
      processes_.meet(key.served);
    if (key.served_kind == PK_SERVED_UNWATCHED) {
      spread_.unwatched(row, count);
      continue;
    }
    if (key.watched) {
      row.key.watched = 0;
      spread_.seen(row, count);
    }
    this->count(row, count);
  }
}

void Recorder::settle_unwatched(bool last) {
  const auto stack_of = [this](uint64_t id) -> std::span<const uint64_t> {
    const auto it = stacks_.find(id);
    if (it == stacks_.end()) return {};
    return it->second;
  };
  spread_.settle(stack_of, [this](const Row& row, const pk_count& c) { count(row, c); }, last);
}

size_t Recorder::resolve_owners(const PartiesOf& parties_of) {
  std::vector<std::pair<Row, pk_count>> found;
  size_t without = 0;
  std::unordered_map<uint64_t, std::vector<Parties::Share>> known;
  for (const auto& [row, count] : rows_) {
    if (row.key.served_kind != PK_SERVED_OBJECT) continue;
    const auto [it, fresh] = known.try_emplace(row.key.served);
    if (fresh) it->second = parties_of(row.key.served);
    if (it->second.empty())
      ++without;
    else
      found.emplace_back(row, count);
  }
  for (auto& [row, count] : found) {
    rows_.erase(row);
    const std::vector<Parties::Share>& shares = known[row.key.served];
    const std::vector<uint64_t> ns = split(count.ns, shares);
    const std::vector<uint64_t> samples = split(count.samples, shares);
    for (size_t i = 0; i < shares.size(); ++i) {
      Row part = row;
      part.key.served_kind = PK_SERVED_LABEL;
      part.key.served = shares[i].label ? shares[i].label : uint64_t{PK_UNCLAIMED} + row.key.reason;
      part.key.reason = 0;
      if (shares.size() > 1) part.key.basis = PK_BASIS_VOTED;
      if (shares[i].label >> 32) processes_.meet(shares[i].label);
      this->count(part, {ns[i], samples[i]});
    }
  }
  return without;
}

void Recorder::add_charge(uint64_t object, const pk_charge& charge) {
  Row row = row_of(charge);
  row.key.served = object;
  row.key.served_kind = PK_SERVED_OBJECT;
  row.key.reason = charge.reason;
  row.key.basis = PK_BASIS_OWNER;
  count(row, {charge.ns, charge.samples});
}

void Recorder::add_nobody(const pk_charge& charge) {
  Row row = row_of(charge);
  row.key.served = PK_UNCLAIMED + charge.reason;
  row.key.basis = PK_BASIS_PROVISIONAL;
  count(row, {charge.ns, charge.samples});
}

void Recorder::add_exact(const pk_exact& exact) {
  Row row{};
  row.key.ran_on = exact.ran_on;
  row.key.served = exact.served;
  row.key.served_kind = exact.served & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
  row.key.kstack = exact.function;
  row.key.syscall = exact.number;
  row.key.kind = exact.kind < PK_EXACT_RUN ? PK_INTERRUPT : PK_MEASURED;
  row.key.vec = exact.kind;
  row.key.basis = exact.basis;
  row.key.reason = PK_UNTRACKED;
  count(row, {exact.ns, exact.count});
}

FrameId Recorder::kernel_frame(uint64_t address) {
  if (const auto it = kernel_frame_.find(address); it != kernel_frame_.end()) return it->second;
  Frame frame;
  frame.kind = FrameKind::kernel;
  frame.address = address;
  const KernelSymbol* symbol = kernel_ ? kernel_->find(address) : nullptr;
  if (!symbol && later_kernel_) symbol = later_kernel_->find(address);
  Mapping mapping;
  mapping.file = "[kernel.kallsyms]";
  if (symbol) {
    frame.function = scratch_.string(symbol->name);
    if (!symbol->module.empty()) mapping.file = "[" + std::string(symbol->module) + "]";
  }
  frame.mapping = scratch_.mapping(mapping);
  return kernel_frame_.emplace(address, scratch_.frame(frame)).first->second;
}

const Recorder::Frames& Recorder::kernel_frames(uint64_t stack) {
  const auto [it, fresh] = kernel_frames_.try_emplace(stack);
  if (!fresh) return it->second;
  if (const auto raw = stacks_.find(stack); raw != stacks_.end()) {
    bool leaf = true;
    for (const uint64_t ip : raw->second) {
      // A return address may lie behind the function it returns to.
      it->second.push_back(kernel_frame(leaf ? ip : ip - 1));
      leaf = false;
    }
  }
  return it->second;
}

const Recorder::Frames& Recorder::interrupt_frames(uint64_t function) {
  const auto [it, fresh] = interrupt_frames_.try_emplace(function);
  if (fresh && function) it->second.push_back(kernel_frame(function));
  return it->second;
}

const Recorder::Frames& Recorder::user_frames(uint64_t stack, uint64_t image) {
  const auto [it, fresh] = user_frames_.try_emplace({stack, image});
  if (!fresh) return it->second;
  const auto raw = stacks_.find(stack);
  if (raw == stacks_.end()) return it->second;
  bool leaf = true;
  for (const uint64_t ip : raw->second) {
    const uint64_t address = leaf ? ip : ip - 1;
    leaf = false;
    const UserFrame found = user_.find(image, address);
    Frame frame;
    frame.kind = FrameKind::user;
    frame.address = address;
    frame.function = scratch_.string(found.function);
    frame.file = scratch_.string(found.source_file);
    frame.line = found.line;
    if (found.map.end > found.map.start) {
      frame.mapping = scratch_.mapping(
          {found.map.start, found.map.end, found.map.offset, found.map.file, found.build_id});
    }
    it->second.push_back(scratch_.frame(frame));
  }
  return it->second;
}

std::string Recorder::interrupt_source(const pk_key& key, const Frames& kernel) {
  switch (key.vec) {
    case PK_EXACT_DEVICE:
      return "irq:" + interrupts_.of(key.syscall);
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

std::string Recorder::function_name(FrameId frame) const {
  const std::string& name = scratch_.text(scratch_.frames()[frame].function);
  return name.substr(0, name.find('.'));  // x.isra.0 is a part of x
}

std::string Recorder::source_of(const pk_key& key, const Label& ran_on, const Frames& kernel) {
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
      return "steal";
    default:
      break;
  }
  if (key.syscall != PK_NO_SYSCALL) return "syscall:" + syscall_name(key.syscall, key.compat);
  // How else the task came into the kernel is told by the outermost frames.
  for (auto it = kernel.rbegin(); it != kernel.rend() && it - kernel.rbegin() < 4; ++it) {
    const std::string& name = scratch_.text(scratch_.frames()[*it].function);
    if (name.starts_with("asm_exc_page_fault")) return "fault";
    if (name.starts_with("asm_exc_")) return "exception:" + name.substr(8);
    if (name.starts_with("asm_")) return "preempt";  // an interrupt's return found other work
    if (name.starts_with("ret_from_fork")) return "fork";
  }
  return "kernel";
}

// The function of the piece of work that a kernel thread is at.
std::string Recorder::work_name(const pk_key& key) {
  const std::string name = function_name(kernel_frame(key.ustack));
  return name.empty() ? "unknown" : name;
}

LabelId Recorder::served_label(Profile& p, const pk_key& key, const Label& ran_on,
                               const Frames& kernel) {
  Label label;
  const bool of_kernel = key.kind == PK_KTHREAD ? kthread_of_kernel(kthread_name(ran_on.comm))
                         : key.kind == PK_WORK  ? work_of_kernel(work_name(key))
                         : key.kind == PK_INTERRUPT
                             ? key.vec == PK_EXACT_CALL &&
                                   (kernel.empty() || call_of_kernel(function_name(kernel.front())))
                             : key.served_kind == PK_SERVED_LABEL;
  if (key.served_kind == PK_SERVED_OBJECT) {
    label.kind = of_kernel ? LabelKind::kernel : LabelKind::unclaimed;
    if (!of_kernel) label.reason = reason_name(key.reason);
  } else if (key.served == PK_IDLE) {
    label.kind = LabelKind::idle;
  } else if (key.served == PK_HOST) {
    label.kind = LabelKind::other;
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

uint32_t Recorder::name_thread(Profile& profile, LabelId process, uint64_t label) const {
  const uint32_t thread = processes_.thread_of(label);
  if (thread) profile.name_thread(process, thread, processes_.thread_name(label));
  return thread;
}

void Recorder::add_special(uint64_t special, uint64_t ns) {
  Row row{};
  row.key.ran_on = special == PK_IDLE ? PK_IDLE : PK_KERNEL;
  row.key.served = special;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.kind = special == PK_IDLE ? PK_IDLING : PK_OWN;
  rows_[row].ns += ns;
}

void Recorder::finish(Profile& profile, const std::function<bool(uint64_t)>& selected) {
  const auto is_process = [](uint64_t label) { return label >> 32 != 0; };
  Label other_label;
  other_label.kind = LabelKind::other;
  // Frame tables are carried over as far as they are used.
  std::unordered_map<FrameId, FrameId> moved;
  const auto move_frame = [&](FrameId id) {
    const auto [it, fresh] = moved.try_emplace(id);
    if (fresh) {
      Frame f = scratch_.frames()[id];
      f.function = profile.string(scratch_.text(f.function));
      f.file = profile.string(scratch_.text(f.file));
      if (f.mapping != no_mapping) f.mapping = profile.mapping(scratch_.mappings()[f.mapping]);
      it->second = profile.frame(f);
    }
    return it->second;
  };
  const auto pseudo = [&](const std::string& name) {
    Frame f;
    f.kind = FrameKind::pseudo;
    f.function = profile.string(name);
    return profile.frame(f);
  };

  Rows rows(rows_.begin(), rows_.end());
  rows_.clear();
  scale_to_measured(rows);
  std::vector<FrameId> stack;
  for (const auto& [row, count] : rows) {
    const pk_key& key = row.key;
    Label ran;
    if (is_process(key.ran_on))
      ran = processes_.label_of(key.ran_on);
    else
      ran.kind = key.ran_on == PK_IDLE   ? LabelKind::idle
                 : key.ran_on == PK_HOST ? LabelKind::other
                                         : LabelKind::kernel;
    const bool exact = key.kind == PK_INTERRUPT;
    const Frames& kernel = exact ? interrupt_frames(key.kstack) : kernel_frames(key.kstack);
    const bool served_other =
        key.served_kind == PK_SERVED_LABEL && is_process(key.served) && !selected(key.served);
    // Kernel threads are of no target, but what runs on them may be for one.
    const bool ran_other = is_process(key.ran_on) && !ran.kthread && !selected(key.ran_on);

    SampleKey sample;
    sample.ran_on = profile.label(ran_other ? other_label : ran);
    sample.served =
        served_other ? profile.label(other_label) : served_label(profile, key, ran, kernel);
    const std::string source = source_of(key, ran, kernel);
    sample.source = profile.string(source);
    sample.basis = static_cast<Basis>(key.basis);
    const bool to_process = key.served_kind == PK_SERVED_LABEL && is_process(key.served);
    sample.thread = ran_other ? 0 : name_thread(profile, sample.ran_on, key.ran_on);
    if (to_process && !served_other)
      sample.served_thread = name_thread(profile, sample.served, key.served);

    stack.clear();
    if (!served_other) {
      if (key.kind != PK_IDLING)
        for (const FrameId f : kernel) stack.push_back(move_frame(f));
      if (key.kind != PK_USER) stack.push_back(pseudo(source));
      if (key.ustack && key.kind != PK_WORK) {
        if (key.kind == PK_SOFTIRQ && key.syscall != PK_NO_SYSCALL)
          stack.push_back(pseudo("syscall:" + syscall_name(key.syscall, key.compat)));
        for (const FrameId f : user_frames(key.ustack, row.image)) stack.push_back(move_frame(f));
      }
    }
    sample.stack = profile.stack(stack);
    SampleValue value;
    (exact ? value.calls : value.count) = count.samples;
    value.ns = count.ns;
    if (exact) value.exact_ns = count.ns;
    profile.add(sample, value);
  }
}

}  // namespace pkprof
