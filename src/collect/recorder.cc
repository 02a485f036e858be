// SPDX-License-Identifier: Apache-2.0
#include "collect/recorder.h"

#include <malloc.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "collect/sources.h"
#include "model/source.h"

namespace pkprof {

namespace {

constexpr uint64_t enough_samples = 10;  // to charge others by

constexpr ptrdiff_t telling_frames = 4;  // the outermost ones, that may tell a source

void add_to(pk_count& sum, const pk_count& more) {
  sum.ns += more.ns;
  sum.samples += more.samples;
}

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
                   uint64_t period_ns, RecorderLimits limits)
    : processes_(processes),
      limits_(limits),
      stacks_(kernel, user),
      spread_(enough_samples * period_ns) {}

void Recorder::count(const Row& row, const pk_count& count) {
  Row to = row;
  // Of processes that are told apart no more.
  to.key.ran_on = processes_.standing_for(row.key.ran_on);
  const bool of_object = row.key.served_kind == PK_SERVED_OBJECT;
  if (row.key.served_kind == PK_SERVED_LABEL)
    to.key.served = processes_.standing_for(row.key.served);
  if (of_object && row.key.served)
    add_to(objects_[to], count);
  else
    add_row(to, count);
}

void Recorder::add_row(const Row& row, const pk_count& count) {
  Row plain = row;
  plain.slot = 0;
  const auto [it, fresh] = rows_.try_emplace(plain);
  if (fresh && has_stack(row.key)) ++with_stack_;
  add_to(it->second, count);
  if (row.slot) add_to_timeline(row, count.ns);
}

// What is a row of its own for its stack alone is one here.
void Recorder::add_to_timeline(const Row& row, uint64_t ns) {
  // A CPU that sleeps long says so when it wakes up: that may be slots later.
  if (!ns || row.key.kind == PK_CALLS || row.key.kind == PK_IDLING) return;
  Row cell = without_stacks(row);
  cell.slot = 1 + ((row.slot - 1) >> slot_shift_);
  cell.key.basis = 0;
  cell.key.watched = 0;
  timeline_[cell] += ns;
  while (timeline_.size() > limits_.cells && slot_shift_ < 31) make_slots_longer();
}

void Recorder::make_slots_longer() {
  ++slot_shift_;
  std::unordered_map<Row, uint64_t, RowHash> longer;
  for (const auto& [row, ns] : timeline_) {
    Row to = row;
    to.slot = 1 + ((row.slot - 1) >> 1);
    longer[to] += ns;
  }
  timeline_ = std::move(longer);
}

void Recorder::add(const KernelSide::Tables& tables) {
  stacks_.hand_over(tables.stacks);
  for (const auto& [key, count] : tables.counts) {
    Row row{key, slot_};
    // The user stack is the consumer's, and it is the one who is served.
    if (has_user_stack(key))
      row.key.ustack =
          stacks_.user_number(key.ustack, processes_.image_of(key.served, key.exec_id));
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
      Row alike = row;
      alike.slot = 0;
      spread_.seen(alike, count);
    }
    this->count(row, count);
  }
}

void Recorder::settle_unwatched(bool last) {
  spread_.settle([this](uint64_t id) { return stacks_.kernel(id); },
                 [this](const Row& row, const pk_count& c) {
                   Row to = row;
                   if (!to.slot) to.slot = slot_;
                   count(to, c);
                 },
                 last);
}

size_t Recorder::resolve_owners(const PartiesOf& parties_of) {
  std::vector<std::pair<Row, pk_count>> found;
  size_t without = 0;
  std::unordered_map<uint64_t, std::vector<Parties::Share>> known;
  for (const auto& [row, count] : objects_) {
    const auto [it, fresh] = known.try_emplace(row.key.served);
    if (fresh) it->second = parties_of(row.key.served);
    if (it->second.empty())
      ++without;
    else
      found.emplace_back(row, count);
  }
  for (auto& [row, count] : found) {
    objects_.erase(row);
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

void Recorder::make_room() {
  if (objects_.size() > limits_.objects) forget_when_objects_worked();
  if (objects_.size() > limits_.objects) forget_objects();
  // Nearly everything is like something: this is for a kind of work that turns never see.
  if (spread_.waiting() > limits_.rows / 2) settle_unwatched(true);
  const bool above = is_above(1);
  // Rows of one program's processes become one: the stacks stay.
  if (above || processes_.is_crowded()) fold_processes();
  if (!above) return;
  // Well below, so that it is not done each time.
  constexpr double enough = 0.75;
  keep_stacks();
  while (is_above(enough) && take_stacks()) keep_stacks();
}

bool Recorder::is_above(double part) const {
  const auto above = [part](size_t have, size_t limit) {
    return static_cast<double>(have) > part * static_cast<double>(limit);
  };
  return above(with_stack_, limits_.rows) || above(stacks_.length(), limits_.stack_frames) ||
         above(stacks_.frames(), limits_.frames);
}

// Of what waits for long, the timeline does not say when it was: it is in the slot of now.
void Recorder::forget_when_objects_worked() {
  for (const auto& [row, c] : std::exchange(objects_, {})) {
    Row to = row;
    to.slot = slot_;
    add_to(objects_[to], c);
  }
}

// Nobody will be found for them any more.
void Recorder::forget_objects() {
  for (const auto& [row, c] : objects_) {
    Row to = row;
    to.key.served = 0;
    forgotten_ += c.samples;
    count(to, c);
  }
  objects_.clear();
}

void Recorder::fold_processes() {
  processes_.fold();
  with_stack_ = 0;
  Counts rows = std::exchange(rows_, {});
  for (const auto& [row, c] : rows) count(row, c);
  rows = std::exchange(objects_, {});
  for (const auto& [row, c] : rows) count(row, c);
  std::unordered_map<Row, uint64_t, RowHash> timeline;
  for (const auto& [row, ns] : timeline_) {
    Row to = row;
    to.key.ran_on = processes_.standing_for(row.key.ran_on);
    if (row.key.served_kind == PK_SERVED_LABEL)
      to.key.served = processes_.standing_for(row.key.served);
    timeline[to] += ns;
  }
  timeline_ = std::move(timeline);
}

// Where the source is read off the stack, as much of it stays as tells that.
Row Recorder::without_stacks(const Row& row) {
  Row to = row;
  if (has_user_stack(row.key)) to.key.ustack = 0;
  if (has_kernel_stack(row.key)) {
    const bool tells_source = row.key.kind == PK_OWN && row.key.syscall == PK_NO_SYSCALL;
    to.key.kstack = tells_source ? stacks_.outermost(row.key.kstack, telling_frames) : 0;
  }
  return to;
}

// Takes the stacks off the quarter of the rows that have the least time, of those that have any.
// False when none had.
bool Recorder::take_stacks() {
  std::vector<std::pair<uint64_t, Row>> least;
  for (const auto& [row, count] : rows_)
    if (without_stacks(row) != row) least.emplace_back(count.ns, row);
  if (least.empty()) return false;
  const auto end = least.begin() + static_cast<ptrdiff_t>((least.size() + 3) / 4);
  std::nth_element(least.begin(), end - 1, least.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [ns, row] : std::span(least.begin(), end)) {
    const pk_count c = rows_.extract(row).mapped();
    --with_stack_;
    without_stack_ += c.samples;
    add_row(without_stacks(row), c);
  }
  return true;
}

void Recorder::keep_stacks() {
  Stacks::Numbers kernel;
  Stacks::Numbers user;
  const auto note = [&](const Row& row) {
    if (has_kernel_stack(row.key)) kernel.insert(row.key.kstack);
    if (has_user_stack(row.key)) user.insert(row.key.ustack);
  };
  for (const Counts* rows : {&rows_, &objects_})
    for (const auto& [row, count] : *rows) note(row);
  for (const auto& [row, ns] : timeline_) note(row);
  spread_.each_row(note);
  stacks_.keep(kernel, user);
}

void Recorder::add_rest(const KernelSide::Rest& rest) {
  for (const auto& [object, charge] : rest.slots) add_charge(object, charge);
  for (const pk_charge& charge : rest.waiting) add_nobody(charge);
  for (const pk_exact& exact : rest.exact) add_exact(exact);
}

void Recorder::add_charge(uint64_t object, const pk_charge& charge) {
  Row row = row_of(charge);
  row.slot = slot_;
  row.key.served = object;
  row.key.served_kind = PK_SERVED_OBJECT;
  row.key.reason = charge.reason;
  row.key.basis = PK_BASIS_OWNER;
  count(row, {charge.ns, charge.samples});
}

void Recorder::add_nobody(const pk_charge& charge) {
  Row row = row_of(charge);
  row.slot = slot_;
  row.key.served = PK_UNCLAIMED + charge.reason;
  row.key.basis = PK_BASIS_PROVISIONAL;
  count(row, {charge.ns, charge.samples});
}

void Recorder::add_exact(const pk_exact& exact) {
  Row row{{}, slot_};
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

std::string Recorder::interrupt_source(const pk_key& key, Frames kernel) {
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
  const std::string_view name = stacks_.function(frame);
  return std::string(name.substr(0, name.find('.')));  // x.isra.0 is a part of x
}

std::string Recorder::source_of(const pk_key& key, const Label& ran_on, Frames kernel) {
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
    case PK_CALLS:
      return std::string(counted_calls);
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
std::string Recorder::work_name(const pk_key& key) {
  const std::string name = function_name(stacks_.kernel_frame(key.ustack));
  return name.empty() ? "unknown" : name;
}

LabelId Recorder::served_label(Profile& p, const pk_key& key, const Label& ran_on, Frames kernel) {
  Label label;
  const bool of_kernel = key.kind == PK_KTHREAD ? kthread_of_kernel(kthread_name(ran_on.comm))
                         : key.kind == PK_WORK  ? work_of_kernel(work_name(key))
                         // A kernel thread that nobody gave any work.
                         : key.kind == PK_CALLS && key.ran_on >> 32
                             ? kthread_of_kernel(kthread_name(ran_on.comm))
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

// Of an interrupt, the function that was called; of calls, the function and where it was called.
std::vector<FrameId> Recorder::functions_of(const pk_key& key) {
  std::vector<FrameId> functions;
  if (key.kind != PK_INTERRUPT && key.kind != PK_CALLS) return functions;
  if (key.kstack) functions.push_back(stacks_.kernel_frame(key.kstack));
  // A return address may lie behind the function it returns to.
  if (key.kind == PK_CALLS && key.ustack) functions.push_back(stacks_.kernel_frame(key.ustack - 1));
  return functions;
}

void Recorder::add_special(uint64_t special, uint64_t ns) {
  Row row{};
  row.key.ran_on = special == PK_IDLE ? PK_IDLE : PK_KERNEL;
  row.key.served = special;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.kind = special == PK_IDLE ? PK_IDLING : PK_OWN;
  rows_[row].ns += ns;
}

Recorder::Told Recorder::tell(Profile& profile, const Row& row, const Selected& selected) {
  const auto is_process = [](uint64_t label) { return label >> 32 != 0; };
  const pk_key& key = row.key;
  Label other_label;
  other_label.kind = LabelKind::other;
  Label ran;
  if (is_process(key.ran_on))
    ran = processes_.label_of(key.ran_on);
  else
    ran.kind = key.ran_on == PK_IDLE   ? LabelKind::idle
               : key.ran_on == PK_HOST ? LabelKind::other
                                       : LabelKind::kernel;
  const bool function_only = key.kind == PK_INTERRUPT || key.kind == PK_CALLS;
  Told told;
  told.functions = functions_of(key);
  told.kernel = function_only ? Frames(told.functions) : stacks_.kernel(key.kstack);
  told.served_other =
      key.served_kind == PK_SERVED_LABEL && is_process(key.served) && !selected(key.served);
  // Kernel threads are of no target, but what runs on them may be for one.
  const bool ran_other = is_process(key.ran_on) && !ran.kthread && !selected(key.ran_on);
  told.key.ran_on = profile.label(ran_other ? other_label : ran);
  told.key.served =
      told.served_other ? profile.label(other_label) : served_label(profile, key, ran, told.kernel);
  told.source = source_of(key, ran, told.kernel);
  told.key.source = profile.string(told.source);
  told.key.basis = static_cast<Basis>(key.basis);
  const bool to_process = key.served_kind == PK_SERVED_LABEL && is_process(key.served);
  told.key.thread = ran_other ? 0 : name_thread(profile, told.key.ran_on, key.ran_on);
  if (to_process && !told.served_other)
    told.key.served_thread = name_thread(profile, told.key.served, key.served);
  return told;
}

void Recorder::finish(Profile& profile, const Selected& selected, bool stacks_of_others) {
  Stacks::Mover move_frame(stacks_, profile);
  const auto pseudo = [&](const std::string& name) {
    Frame f;
    f.kind = FrameKind::pseudo;
    f.function = profile.string(name);
    return profile.frame(f);
  };

  Rows rows(rows_.begin(), rows_.end());
  for (const auto& [row, c] : objects_) {
    rows.emplace_back(row, c);
    if (row.slot) add_to_timeline(row, c.ns);
  }
  rows_ = {};
  with_stack_ = 0;
  objects_ = {};
  // Of many rows, what they leave to the allocator is of no use for the profile's large vectors.
  if (rows.size() > limits_.rows / 4) malloc_trim(0);
  profile.reserve(profile.samples().size() + rows.size());
  scale_to_measured(rows);
  std::vector<FrameId> stack;
  for (const auto& [row, count] : rows) {
    const pk_key& key = row.key;
    const bool exact = key.kind == PK_INTERRUPT;
    const bool calls = key.kind == PK_CALLS;
    Told told = tell(profile, row, selected);
    stack.clear();
    if (!told.served_other || stacks_of_others) {
      if (key.kind != PK_IDLING)
        for (const FrameId f : told.kernel) stack.push_back(move_frame(f));
      if (key.kind != PK_USER && !calls) stack.push_back(pseudo(told.source));
      if (!told.served_other && has_user_stack(key)) {
        if (key.kind == PK_SOFTIRQ && key.syscall != PK_NO_SYSCALL)
          stack.push_back(pseudo("syscall:" + syscall_name(key.syscall, key.compat)));
        for (const FrameId f : stacks_.user(key.ustack)) stack.push_back(move_frame(f));
      }
    }
    told.key.stack = profile.stack(stack);
    SampleValue value;
    (exact || calls ? value.calls : value.count) = count.samples;
    value.ns = count.ns;
    if (exact) value.exact_ns = count.ns;
    profile.add(told.key, value);
  }
  finish_timeline(profile, selected);
}

void Recorder::finish_timeline(Profile& profile, const Selected& selected) {
  if (timeline_.empty()) return;
  std::map<std::tuple<uint32_t, LabelId, LabelId, StringId>, uint64_t> cells;
  for (const auto& [row, ns] : timeline_) {
    const Told told = tell(profile, row, selected);
    cells[{row.slot - 1, told.key.ran_on, told.key.served, told.key.source}] += ns;
  }
  timeline_.clear();
  for (const auto& [cell, ns] : cells) {
    const auto& [slot, ran_on, served, source] = cell;
    profile.timeline.push_back({slot, ran_on, served, source, ns});
  }
  profile.meta.slot_ns = slot_ns_ << slot_shift_;
}

}  // namespace pkprof
