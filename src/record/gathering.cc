// SPDX-License-Identifier: Apache-2.0
#include "record/gathering.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "kernel/kernel_stats.h"
#include "process/targets.h"

namespace pkprof {
namespace {

// What was watched for so long can stand for a pause before it; of less, the pause is carried on.
constexpr uint64_t long_enough_ns = 500'000'000;

// By pk_stack_end.
constexpr const char* ends[PK_STACK_ENDS] = {
    "by frame pointers alone", whole_stack,      "no table yet", "nothing known of the code",
    "not to be read",          "led to no code", "too deep"};

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

Gathering::Gathering(Prepared& prepared, const RecordOptions& options, Course& course)
    : prepared_(prepared),
      kernel_(prepared.kernel),
      options_(options),
      course_(course),
      user_symbols_({.inlines = options.inlines, .data = (options.usage & PK_USAGE_LOCK) != 0}),
      processes_(user_symbols_, options.threads),
      recorder_(prepared.symbols ? &*prepared.symbols : nullptr, user_symbols_, processes_) {
  if (options.clients) recorder_.know_clients(kernel_.clients());
  recorder_.want({.kept = options.waits, .locks = (options.usage & PK_USAGE_LOCK) != 0});
  if (options.usage & PK_USAGE_NET)
    recorder_.peers().ask([this](uint64_t number) { return kernel_.peer(number); },
                          [this](uint64_t object) { return kernel_.owners().of(object); });
  if (options.usage & PK_USAGE_LOCK)
    recorder_.lock_names().ask([this](uint64_t address) { return kernel_.lock_name(address); });
  if (options.counts_waits())
    recorder_.wakeups().ask([this](uint64_t number) { return kernel_.waits().waker(number); },
                            [this](uint64_t object) { return main_party_of(object); });
  recorder_.fetch_stacks_by([this](uint64_t number) { return fetch_stack(number); });
  select_processes(processes_, options.target,
                   prepared.child ? static_cast<uint32_t>(prepared.child->pid()) : 0);
}

CountedStack Gathering::fetch_stack(uint64_t number) {
  if (number & PK_STACK_UNFINISHED && prepared_.unfinished)
    if (UnfinishedStacks::Finished s = prepared_.unfinished->finish(number); !s.ip.empty())
      return {std::move(s.ip), s.end};
  return kernel_.tables().stack(number);
}

void Gathering::begin(const BudgetKeeper& budget) {
  budget_ = &budget;
  drained_ = {.at = course_.started, .monotonic = monotonic_ns()};
  since_ = course_.started;
}

// Two sources tell of processes: of what came after this moment, one may have told what came before
// what the other did not tell yet.
void Gathering::follow_processes() {
  const uint64_t until = monotonic_ns();
  std::vector<ProcessEvent> events = std::exchange(events_ahead_, {});
  const auto add = [&events](std::vector<ProcessEvent> more) {
    events.insert(events.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  };
  add(prepared_.mappings.take());
  if (prepared_.unfinished) {
    prepared_.unfinished->collect();
    for (UnfinishedStacks::Mapped& m : prepared_.unfinished->take_mapped()) {
      ProcessEvent e;
      e.kind = ProcessEvent::Kind::code;
      e.time = m.time;
      e.pid = m.pid;
      e.map = std::move(m.map);
      events.push_back(std::move(e));
    }
  }
  if (prepared_.sideband) add(prepared_.sideband->take());
  std::ranges::stable_sort(events, {}, &ProcessEvent::time);
  const auto ahead = std::ranges::upper_bound(events, until, {}, &ProcessEvent::time);
  events_ahead_.assign(std::make_move_iterator(ahead), std::make_move_iterator(events.end()));
  events.erase(ahead, events.end());
  processes_.add_events(events);
  for (const uint32_t cpu : kernel_.clocks().open_returned())
    if (auto r = prepared_.sideband ? prepared_.sideband->follow(cpu) : Result<>(); !r)
      course_.degraded.push_back(r.error().message);
}

// What was watched since the last time stands for itself and for the pause before it.
void Gathering::begin_batch(uint64_t taken, uint64_t watched_ns) {
  const uint64_t all_ns = taken - drained_.at;
  const uint64_t on_ns = std::min(watched_ns - drained_.watched_ns, all_ns);
  unwatched_ns_ += all_ns - on_ns;
  const uint64_t also_ns = on_ns >= long_enough_ns
                               ? unwatched_ns_
                               : static_cast<uint64_t>(static_cast<double>(unwatched_ns_) *
                                                       static_cast<double>(on_ns) / long_enough_ns);
  recorder_.begin_scale(on_ns, on_ns + also_ns);
  unwatched_ns_ -= also_ns;
  // What is handed over at intervals is its own timeline.
  if (options_.interval <= 0 && !options_.measure) {
    const uint64_t slots = std::max<uint64_t>(1, all_ns / interval_ns);
    const uint64_t middle = drained_.at + all_ns / slots / 2;  // of the first one
    recorder_.begin_slot(static_cast<uint32_t>((middle - since_) / interval_ns),
                         static_cast<uint32_t>(slots), interval_ns);
  }
  drained_.at = taken;
  drained_.watched_ns = watched_ns;
}

Result<> Gathering::drain(Drain when) {
  Leftovers left;  // what is not in the tables
  if (when == Drain::end) left = kernel_.tables().take_leftovers();
  auto tables = kernel_.tables().take();
  if (!tables) return std::unexpected(tables.error());
  // What processes did up to now comes first, so that their samples find their mappings.
  follow_processes();
  for (const auto& [label, info] : tables->labels)
    processes_.add_label(label, info, prepared_.mappings.path_of(info.program));
  const uint64_t before = std::exchange(drained_.monotonic, monotonic_ns());
  parties_.add(tables->votes, static_cast<double>(drained_.monotonic - before) / 1e9);
  parties_.add(left.votes, 0);
  begin_batch(course_.stopped ? course_.stopped : tables->taken, tables->watched_ns);
  drained_.idle_ns = tables->idle_ns;
  recorder_.add(*tables);
  if (prepared_.unfinished) prepared_.unfinished->forget_old();
  recorder_.add_leftovers(left);
  processes_.bury();
  charge_objects(when);
  recorder_.make_room();
  return {};
}

// A pause that nothing stands for yet is as the rest is. Where all is pause, nobody knows.
void Gathering::stand_for_all() {
  const uint64_t all_ns = until() - since_;
  const uint64_t pause_ns = std::min(std::exchange(unwatched_ns_, 0), all_ns);
  if (!pause_ns) return;
  if (pause_ns < all_ns) return recorder_.scale_all(all_ns - pause_ns, all_ns);
  recorder_.begin_scale(1, 1);
  recorder_.add_special(uint64_t{PK_UNCLAIMED} + PK_UNWATCHED,
                        all_ns * kernel_.clocks().cpus(since_));
}

void Gathering::charge_objects(Drain when) {
  const bool last = when == Drain::end;
  const auto owner = [this](uint64_t object) { return kernel_.owners().of(object); };
  const auto parties = [&](uint64_t object) { return parties_.of(object, owner); };
  // Where there are many files it takes long: asking has a hundredth of the time.
  if (recorder_.resolve_owners(parties) && (last || monotonic_ns() >= next_ask_)) {
    const uint64_t before = monotonic_ns();
    const bool asked = kernel_.owners().ask();
    next_ask_ = monotonic_ns() + 100 * (monotonic_ns() - before);
    if (asked) recorder_.resolve_owners(parties);
  }
  if (last)
    recorder_.resolve_owners([&](uint64_t object) { return parties_.of(object, owner, true); });
}

// Of those it is for, who has most of it; 0: not known.
uint64_t Gathering::main_party_of(uint64_t object) {
  const auto owner = [this](uint64_t asked) { return kernel_.owners().of(asked); };
  const auto parties = parties_.of(object, owner);
  const auto most = std::ranges::max_element(parties, {}, &Parties::Share::part);
  return most == parties.end() ? 0 : most->label;
}

void Gathering::add_what_has_no_sample() {
  recorder_.add_idle_so_far(drained_.idle_ns);
  const uint64_t lost_ns = kernel_.stats().lost_ns;
  recorder_.add_special(uint64_t{PK_UNCLAIMED} + PK_LOST, lost_ns - reported_.lost_ns);
  reported_.lost_ns = lost_ns;
}

void Gathering::forget_what_moves() {
  recorder_.give_up_objects();
  parties_.forget_fading();
}

Profile Gathering::make_profile() {
  add_what_has_no_sample();
  stand_for_all();
  Profile profile;
  fill_meta(profile.meta);
  recorder_.finish(profile, selection(processes_, options_.target), options_.stacks_of_others);
  return profile;
}

Result<Profile> Gathering::cut() {
  if (options_.counts_waits()) kernel_.waits().count_ongoing();
  if (auto r = drain(); !r) return std::unexpected(r.error());
  return make_profile();
}

Result<Profile> Gathering::finish() {
  if (auto r = drain(Drain::end); !r) return std::unexpected(r.error());
  recorder_.add_kernel_symbols([this] {
    if (!later_symbols_) later_symbols_.emplace(load_bpf_symbols());
    return *later_symbols_ ? &**later_symbols_ : nullptr;
  });
  return make_profile();
}

Totals Gathering::totals() const {
  Totals now = Totals::read(kernel_, *budget_);
  if (course_.stopped) now.user_ns = course_.own_cpu_ns;
  now.counters = counters();
  now.user_stacks = user_stacks();
  return now;
}

Progress Gathering::progress() const {
  const Totals now = totals();
  const uint64_t duration_ns = drained_.at - course_.started;
  const uint64_t cost_ns = kernel_cost_ns({}, now, *budget_) + now.user_ns;
  return {
      .paused = course_.paused,
      .duration_ns = duration_ns,
      .samples = now.samples,
      .lost = now.lost,
      .cost = duration_ns ? static_cast<double>(cost_ns) / static_cast<double>(duration_ns) : 0};
}

// Of the recording since the last profile.
void Gathering::fill_meta(Meta& meta) {
  meta.kernel = kernel_release();
  meta.host = host_name();
  for (const std::string& word : options_.target.command)
    meta.command += (meta.command.empty() ? "" : " ") + word;
  meta.cpus = kernel_.clocks().cpus(since_);
  meta.degraded = kernel_.clocks().absences(since_, until());
  meta.measured = options_.measure;
  meta.start_unix_ns = course_.started_unix + (since_ - course_.started);
  meta.duration_ns = until() - since_;
  meta.paused_ns = std::exchange(course_.paused_ns, 0);
  meta.frequency_hz = options_.frequency_hz;
  const uint64_t before_ns = std::exchange(reported_.watched_ns, drained_.watched_ns);
  meta.unwatched_ns =
      meta.duration_ns - std::min(meta.duration_ns, drained_.watched_ns - before_ns);
  Totals now = totals();
  add_difference(reported_.totals, now, meta);
  meta.cost_kernel_ns = kernel_cost_ns(reported_.totals, now, *budget_);
  meta.counters["hooks not attached again"] = budget_->unhooked();  // up to now: it lasts
  reported_.totals = std::move(now);
  since_ = until();
  for (const auto* degraded : {&prepared_.degraded, &course_.degraded})
    meta.degraded.insert(meta.degraded.end(), degraded->begin(), degraded->end());
  for (const Capability& c : kernel_.hooks().capabilities())
    if (!c.works) meta.degraded.push_back(c.name + ": " + c.how + "; " + c.costs);
  const CallCounting::Attached& calls = course_.calls;
  meta.counted_functions = calls.functions;
  meta.counted_by = calls.how;
  if (!calls.refused.empty())
    meta.degraded.push_back("calls of " + std::to_string(calls.refused.size()) +
                            " functions cannot be counted here: " + listed(calls.refused));
  for (const std::string& w : user_symbols_.warnings()) meta.degraded.push_back(w);
}

std::map<std::string, uint64_t> Gathering::user_stacks() const {
  std::map<std::string, uint64_t> all;
  for (size_t end = 0; end < PK_STACK_ENDS; ++end)
    if (const uint64_t samples = recorder_.user_stacks()[end]) all[ends[end]] = samples;
  return all;
}

// Of what had no room or could not be done, up to now.
std::map<std::string, uint64_t> Gathering::counters() const {
  std::map<std::string, uint64_t> all = {
      {"shared objects forgotten", parties_.forgotten()},
      {"processes with unreadable mappings", processes_.unreadable()},
      {"samples without a stack for want of memory", recorder_.without_stack().samples},
      {"waits, or uses of other resources, without a stack for want of memory",
       recorder_.without_stack().uses},
      {"samples of objects forgotten", recorder_.forgotten().samples},
      {"uses of other resources, of objects forgotten", recorder_.forgotten().uses},
      {"wakeups forgotten", recorder_.wakeups_forgotten()},
      {"ended processes without a row of their own", processes_.folded()},
      {"ended threads without a row of their own", processes_.folded_threads()},
      {"owners of sockets without room", kernel_.owners().without_room()},
      {"calls not counted, since they interrupted counting", kernel_.calls().missed()},
      {"process events lost", prepared_.sideband ? prepared_.sideband->lost() : 0},
  };
  if (prepared_.tables) {
    const TableMaker::Counts tables = prepared_.tables->counts();
    all["files whose tables of frames could not be made"] = tables.unreadable + tables.refused;
    all["tables of frames that made room for others"] = tables.removed;
  }
  all.merge(kernel_counters(kernel_.stats()));
  return all;
}

}  // namespace pkprof
