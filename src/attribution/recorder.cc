// SPDX-License-Identifier: Apache-2.0
#include "attribution/recorder.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <span>

#include "attribution/sources.h"

namespace pkprof {

namespace {

void add_to(pk_count& sum, const pk_count& more) {
  sum.ns += more.ns;
  sum.samples += more.samples;
}

}  // namespace

Recorder::Recorder(const KernelSymbols* kernel, UserSymbols& user, Processes& processes,
                   RecorderLimits limits)
    : processes_(processes),
      limits_(limits),
      stacks_(kernel, user),
      clients_(processes),
      calls_(clients_, processes, stacks_),
      wakeups_(stacks_, processes),
      names_(stacks_, processes, clients_, wakeups_, peers_, lock_names_),
      timeline_(limits.cells) {}

// Some are told apart no more.
Row Recorder::with_processes_of_now(const Row& row) const {
  Row to = row;
  if (has_ran_on(row.key)) to.key.ran_on = processes_.standing_for(row.key.ran_on);
  if (row.key.served_kind == PK_SERVED_LABEL)
    to.key.served = processes_.standing_for(row.key.served);
  return to;
}

void Recorder::count(const Row& row, const pk_count& count) {
  const Row to = with_processes_of_now(row);
  if (row.key.served_kind == PK_SERVED_OBJECT && row.key.served)
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
  if (row.slot) timeline_.add(names_.without_stacks(row), count.ns);
}

namespace {

// Our own stacks are not unwound (bpf/user/unwind.bpf.c).
bool is_ours(uint64_t label) {
  return (label & ~PK_ANY_THREAD) >> 32 == static_cast<uint32_t>(::getpid());
}

}  // namespace

void Recorder::add(const Tables& tables) {
  stacks_.hand_over(tables.stacks);
  for (const auto& [told, count] : tables.counts) {
    const pk_key key = clients_.told_apart(told);
    const bool of_cpu = is_of_cpu(key);
    Row row{key, of_cpu ? timeline_.now() : 0};
    if (has_kernel_stack(key)) stacks_.meet(key.kstack);
    if (is_blocked(key))
      wakeups_.meet(key.waker, key.futex ? processes_.image_of(key.served, key.exec_id) : 0);
    if (is_of_kernel_lock(key)) lock_names_.meet(stacks_.first_address(key.kstack));
    meet_peer(row.key);
    if (!of_cpu && key.served_kind == PK_SERVED_LABEL && key.served >> 32)
      processes_.meet(key.served);
    // The user stack is the consumer's, and it is the one who is served.
    if (has_user_stack(key)) {
      const Stacks::User stack =
          stacks_.resolve(key.ustack, processes_.image_of(key.served, key.exec_id));
      row.key.ustack = stack.number;
      if (of_cpu && !is_ours(key.served)) user_stacks_[stack.end] += count.samples;
    }
    row.key.exec_id = 0;
    calls_.meet(key.client);
    // A sleeper whose timer went off may never have been sampled; all others were told.
    if (key.served_kind == PK_SERVED_LABEL && key.basis == PK_BASIS_OWNER && key.served >> 32)
      processes_.meet(key.served);
    this->count(row, scaled(key, count.ns, count.samples));
  }
}

void Recorder::meet_peer(pk_key& key) {
  if (!is_of_network(key)) return;
  key.ran_on = peers_.meet(key.ran_on);
  if (const uint64_t process = peers_.process_of(key.ran_on)) processes_.meet(process);
}

void Recorder::scale_all(uint64_t watched_ns, uint64_t all_ns) {
  Scale scale(watched_ns, all_ns);
  Scale scale_times = scale;
  for (Counts* rows : {&rows_, &objects_})
    for (auto& [row, count] : *rows) {
      count.ns = scale(count.ns);
      if (!is_of_cpu(row.key)) count.samples = scale_times(count.samples);
    }
  timeline_.scale(Scale(watched_ns, all_ns));
}

size_t Recorder::resolve_owners(const Parties::Of& parties_of) {
  struct Object {
    std::vector<Parties::Share> parties;
    std::map<int, Rows> rows;  // nanoseconds and bytes are shared out apart
  };
  std::map<uint64_t, Object> objects;
  size_t without = 0;
  for (const auto& [row, count] : objects_) {
    const auto [it, fresh] = objects.try_emplace(row.key.served);
    if (fresh) it->second.parties = parties_of(row.key.served);
    if (it->second.parties.empty())
      ++without;
    else
      it->second.rows[is_of_cpu(row.key) ? -1 : row.key.usage].emplace_back(row, count);
  }
  for (const Object& object : std::views::values(objects))
    for (const Rows& rows : std::views::values(object.rows)) charge_all(rows, object.parties);
  return without;
}

void Recorder::charge_all(const Rows& rows, std::span<const Parties::Share> parties) {
  for (const auto& [row, count] : rows) objects_.erase(row);
  if (parties.size() > few_parties) return charge_many(rows, parties);
  for (const auto& [row, c] : rows)
    charge(row, c.samples, parties, split(c.ns, parties), parties.size() > 1);
}

// `ns` has what each party gets. `voted`: there are others, if not of this row.
void Recorder::charge(const Row& row, uint64_t samples, std::span<const Parties::Share> parties,
                      std::span<const uint64_t> ns, bool voted) {
  const std::vector<uint64_t> parts = split(samples, parties);
  for (size_t i = 0; i < parties.size(); ++i) {
    if (!ns[i] && !parts[i]) continue;
    const pk_key key = clients_.told_apart(charged_to(row.key, parties[i].label, voted));
    if (key.served >> 32) processes_.meet(key.served);
    count({key, row.slot}, {ns[i], parts[i]});
  }
}

// See lay_out().
void Recorder::charge_many(std::span<const std::pair<Row, pk_count>> rows,
                           std::span<const Parties::Share> parties) {
  // Calls take no time of their own: they are cut by their number.
  const bool timed = std::ranges::any_of(rows, [](const auto& r) { return r.second.ns != 0; });
  std::vector<uint64_t> amounts;
  for (const auto& [row, c] : rows) amounts.push_back(timed ? c.ns : c.samples);
  std::vector<Parties::Share> pieces;
  std::vector<uint64_t> ns;
  uint64_t told = 0;
  lay_out(amounts, parties, [&](size_t i, size_t party, uint64_t piece) {
    const uint64_t amount = amounts[i];
    pieces.push_back({parties[party].label,
                      amount ? static_cast<double>(piece) / static_cast<double>(amount) : 1});
    ns.push_back(timed ? piece : 0);
    told += piece;
    if (told != amount) return;
    charge(rows[i].first, rows[i].second.samples, pieces, ns, true);
    pieces.clear();
    ns.clear();
    told = 0;
  });
}

void Recorder::make_room() {
  if (objects_.size() > limits_.objects) forget_when_objects_worked();
  if (objects_.size() > limits_.objects) forget_objects();
  if (timeline_.is_full()) shorten_timeline();
  const bool above = is_above(1);
  // Rows of one program's processes become one: the stacks stay.
  if (above || processes_.is_crowded()) fold_processes();
  if (!above) return;
  // Well below, so that it is not done each time.
  constexpr double enough = 0.75;
  keep_stacks();
  constexpr uint32_t just_now = 2;
  while (is_above(enough) && take_stacks()) keep_stacks(just_now);
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
    to.slot = timeline_.now();
    add_to(objects_[to], c);
  }
}

void Recorder::give_up_objects() {
  for (const auto& [row, c] : std::exchange(objects_, {})) {
    Row to = row;
    to.key.served = 0;
    count(to, c);
  }
}

void Recorder::forget_objects() {
  for (const auto& [row, c] : objects_) forgotten_.add(row.key, c);
  give_up_objects();
}

// Most rows stay as they are, and where they are.
void Recorder::fold_processes() {
  processes_.fold();
  Rows changed;
  for (Counts* rows : {&rows_, &objects_})
    std::erase_if(*rows, [&](const auto& entry) {
      if (with_processes_of_now(entry.first) == entry.first) return false;
      if (rows == &rows_ && has_stack(entry.first.key)) --with_stack_;
      changed.push_back(entry);
      return true;
    });
  for (const auto& [row, c] : changed) count(row, c);
  timeline_.change_rows([this](const Row& row) { return with_processes_of_now(row); });
}

// What processes did that have ended, second by second, is their programs' there: of a thousand
// that came and went in a moment longer slots would tell no less. Of those that live they do.
void Recorder::shorten_timeline() {
  timeline_.change_rows([this](const Row& row) {
    Row to = row;
    to.key.ran_on = processes_.program_of(row.key.ran_on);
    if (row.key.served_kind == PK_SERVED_LABEL)
      to.key.served = processes_.program_of(row.key.served);
    return to;
  });
  timeline_.make_room();
}

// Takes the stacks off the quarter of the rows that have the least time, of those that have any.
// False when none had.
bool Recorder::take_stacks() {
  std::vector<std::pair<uint64_t, Row>> least;
  for (const auto& [row, count] : rows_)
    if (names_.without_stacks(row) != row) least.emplace_back(count.ns, row);
  if (least.empty()) return false;
  const auto end = least.begin() + static_cast<ptrdiff_t>((least.size() + 3) / 4);
  std::nth_element(least.begin(), end - 1, least.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [ns, row] : std::span(least.begin(), end)) {
    const pk_count c = rows_.extract(row).mapped();
    --with_stack_;
    without_stack_.add(row.key, c);
    add_row(names_.without_stacks(row), c);
  }
  return true;
}

void Recorder::keep_stacks(uint32_t rounds) {
  Stacks::Numbers kernel, user, wakeups;
  const auto note = [&](const Row& row) {
    if (has_kernel_stack(row.key)) kernel.insert(row.key.kstack);
    if (has_user_stack(row.key)) user.insert(row.key.ustack);
    if (is_blocked(row.key)) wakeups.insert(row.key.waker);
  };
  for (const Counts* rows : {&rows_, &objects_})
    for (const auto& [row, count] : *rows) note(row);
  timeline_.each_row(note);
  wakeups_.keep(wakeups);
  calls_.each_stack([&user](uint64_t stack) { user.insert(stack); });
  wakeups_.add_stacks(kernel, user);
  stacks_.keep(kernel, user, rounds);
}

void Recorder::tell(Profile& profile, const Row& row, const SampleKey& key, const pk_count& count) {
  if (row.key.kind == PK_USAGE) {
    profile.add(key, value_of(row.key, count));
    return;
  }
  SampleValue value{.ns = count.ns};
  const bool exact = row.key.kind == PK_INTERRUPT;
  (exact || row.key.kind == PK_CALLS ? value.calls : value.count) = count.samples;
  if (exact) value.exact_ns = count.ns;
  profile.add(key, value);
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
    if (row.slot) timeline_.add(names_.without_stacks(row), c.ns);
  }
  rows_ = {};
  with_stack_ = 0;
  objects_ = {};
  // Of many rows, what they leave to the allocator is of no use for the profile's large vectors.
  if (rows.size() > limits_.rows / 4) malloc_trim(0);
  profile.reserve(profile.samples().size() + rows.size());
  scale_to_measured(rows, {[this](uint64_t label) { return processes_.is_kernel_thread(label); },
                           [this](uint64_t label) { return processes_.polls(label); }});
  std::vector<FrameId> stack;
  for (const auto& [row, count] : rows) {
    const pk_key& key = row.key;
    const bool calls = key.kind == PK_CALLS;
    RowNames::Told told = names_.tell(profile, row, selected);
    if (key.kind == PK_WAIT && told.served_other) continue;  // whoever is not asked for may wait
    stack.clear();
    if (!told.lock.empty()) stack.push_back(pseudo(told.lock));
    if (!told.served_other || stacks_of_others) {
      if (key.kind != PK_IDLING)
        for (const FrameId f : told.kernel) stack.push_back(move_frame(f));
      if (is_of_device(key)) stack.push_back(pseudo(devices_.of(key)));
      if (key.kind != PK_USER && !calls) stack.push_back(pseudo(told.source));
      if (!told.served_other && has_user_stack(key)) {
        if (key.kind == PK_SOFTIRQ && key.syscall != PK_NO_SYSCALL)
          stack.push_back(pseudo("syscall:" + syscall_name(key.syscall, key.compat)));
        for (const FrameId f : stacks_.user(key.ustack)) stack.push_back(move_frame(f));
      }
    }
    told.key.stack = profile.stack(stack);
    if (is_blocked(key)) told.key.wakeup = wakeups_.tell(profile, key.waker, move_frame);
    told.key.client = calls_.tell(profile, told.key.client, key.client, move_frame);
    if (key.kind != PK_WAIT || waits_.kept) tell(profile, row, told.key, count);
    if (key.kind != PK_WAIT || !waits_.locks) continue;
    if (auto lock = as_lock(profile, told.key, row.key)) {
      if (const std::string name = wakeups_.lock_of(key.waker); !name.empty())
        stack.insert(stack.begin(), pseudo(name));
      lock->stack = profile.stack(stack);
      tell(profile, row, *lock, count);
    }
  }
  clients_.tell_requests(profile, selected);
  timeline_.finish(profile,
                   [&](const Row& row) { return names_.tell(profile, row, selected).key; });
}

}  // namespace pkprof
