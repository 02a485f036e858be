// SPDX-License-Identifier: Apache-2.0
// Session: what becomes of what was counted.
#include <algorithm>

#include "base/clock.h"
#include "kernel/kernel_stats.h"
#include "process/targets.h"
#include "record/session_impl.h"

namespace pkprof {
namespace {

// What was watched for so long can stand for a pause before it; of less, the pause is carried on.
constexpr uint64_t long_enough_ns = 500'000'000;

}  // namespace

// Two sources tell of processes: of what came after this moment, one may have told what came before
// what the other did not tell yet.
void Session::follow_processes() {
  const uint64_t until = monotonic_ns();
  std::vector<ProcessEvent> events = std::exchange(events_ahead_, {});
  const auto add = [&events](std::vector<ProcessEvent> more) {
    events.insert(events.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  };
  add(mappings_->take());
  if (sideband_) add(sideband_->take());
  std::ranges::stable_sort(events, {}, &ProcessEvent::time);
  const auto ahead = std::ranges::upper_bound(events, until, {}, &ProcessEvent::time);
  events_ahead_.assign(std::make_move_iterator(ahead), std::make_move_iterator(events.end()));
  events.erase(ahead, events.end());
  processes_.add_events(events);
  for (const uint32_t cpu : kernel_->clocks().open_returned())
    if (auto r = sideband_ ? sideband_->follow(cpu) : Result<>(); !r)
      degraded_.push_back(r.error().message);
}

// What was watched since the last time stands for itself and for the pause before it.
void Session::begin_batch(uint64_t taken, uint64_t watched_ns) {
  const uint64_t all_ns = taken - drained_;
  const uint64_t on_ns = std::min(watched_ns - drained_watched_ns_, all_ns);
  unwatched_ns_ += all_ns - on_ns;
  const uint64_t also_ns = on_ns >= long_enough_ns
                               ? unwatched_ns_
                               : static_cast<uint64_t>(static_cast<double>(unwatched_ns_) *
                                                       static_cast<double>(on_ns) / long_enough_ns);
  recorder_->begin_scale(on_ns, on_ns + also_ns);
  unwatched_ns_ -= also_ns;
  // What is handed over at intervals is its own timeline.
  if (options_.interval <= 0 && !options_.measure) {
    const uint64_t slots = std::max<uint64_t>(1, all_ns / drain_interval_ns);
    const uint64_t middle = drained_ + all_ns / slots / 2;  // of the first one
    recorder_->begin_slot(static_cast<uint32_t>((middle - since_) / drain_interval_ns),
                          static_cast<uint32_t>(slots), drain_interval_ns);
  }
  drained_ = taken;
  drained_watched_ns_ = watched_ns;
}

Result<> Session::drain(Drain when) {
  Leftovers left;  // what is not in the tables
  if (when == Drain::end) left = kernel_->tables().take_leftovers();
  auto tables = kernel_->tables().take();
  if (!tables) return std::unexpected(tables.error());
  // What processes did up to now comes first, so that their samples find their mappings.
  follow_processes();
  for (const auto& [label, info] : tables->labels)
    processes_.add_label(label, info, mappings_->path_of(info.program));
  const uint64_t before = std::exchange(drained_at_, monotonic_ns());
  parties_.add(tables->votes, static_cast<double>(drained_at_ - before) / 1e9);
  parties_.add(left.votes, 0);
  begin_batch(stopped_ ? stopped_ : tables->taken, tables->watched_ns);
  idle_ns_ = tables->idle_ns;
  recorder_->add(*tables);
  recorder_->add_leftovers(left);
  processes_.bury();
  charge_objects(when == Drain::end);
  recorder_->make_room();
  return {};
}

// A pause that nothing stands for yet is as the rest is. Where all is pause, nobody knows.
void Session::stand_for_all(uint64_t until) {
  const uint64_t all_ns = until - since_;
  const uint64_t pause_ns = std::min(std::exchange(unwatched_ns_, 0), all_ns);
  if (!pause_ns) return;
  if (pause_ns < all_ns) return recorder_->scale_all(all_ns - pause_ns, all_ns);
  recorder_->begin_scale(1, 1);
  recorder_->add_special(uint64_t{PK_UNCLAIMED} + PK_UNWATCHED,
                         all_ns * kernel_->clocks().cpus(since_));
}

void Session::charge_objects(bool last) {
  const auto owner = [this](uint64_t object) { return kernel_->owners().of(object); };
  const auto parties = [&](uint64_t object) { return parties_.of(object, owner); };
  // Where there are many files it takes long: asking has a hundredth of the time.
  if (recorder_->resolve_owners(parties) && (last || monotonic_ns() >= next_ask_)) {
    const uint64_t before = monotonic_ns();
    const bool asked = kernel_->owners().ask();
    next_ask_ = monotonic_ns() + 100 * (monotonic_ns() - before);
    if (asked) recorder_->resolve_owners(parties);
  }
  if (last)
    recorder_->resolve_owners([&](uint64_t object) { return parties_.of(object, owner, true); });
}

void Session::add_what_has_no_sample(uint64_t idle_ns) {
  recorder_->add_idle_so_far(idle_ns);
  const uint64_t lost_ns = kernel_->stats().lost_ns;
  recorder_->add_special(uint64_t{PK_UNCLAIMED} + PK_LOST, lost_ns - reported_lost_ns_);
  reported_lost_ns_ = lost_ns;
}

Result<> Session::finish(Profile& profile) {
  if (auto r = drain(Drain::end); !r) return r;
  add_what_has_no_sample(idle_ns_);
  stand_for_all(stopped_);
  fill_meta(profile, stopped_);
  recorder_->add_kernel_symbols([this] {
    if (!later_symbols_) later_symbols_.emplace(load_bpf_symbols());
    return *later_symbols_ ? &**later_symbols_ : nullptr;
  });
  recorder_->finish(profile, selection(processes_, options_.target), options_.stacks_of_others);
  return {};
}

// What was since the last time; it is not in what comes after.
Result<Profile> Session::cut() {
  if (auto r = drain(); !r) return std::unexpected(r.error());
  add_what_has_no_sample(idle_ns_);
  stand_for_all(drained_);
  Profile profile;
  fill_meta(profile, drained_);
  recorder_->finish(profile, selection(processes_, options_.target), options_.stacks_of_others);
  return profile;
}

Totals Session::totals() const {
  Totals now = Totals::read(*kernel_, *budget_);
  if (stopped_) now.user_ns = own_cpu_ns_;
  now.counters = counters();
  return now;
}

void Session::tell_progress() {
  const Totals now = totals();
  const uint64_t duration_ns = drained_ - started_;
  if (duration_ns < drain_interval_ns / 2 && !paused_)
    return;  // of a moment there is little to say
  const uint64_t cost_ns = kernel_cost_ns({}, now, *budget_) + now.user_ns;
  options_.progress(
      {.paused = paused_,
       .duration_ns = duration_ns,
       .samples = now.samples,
       .lost = now.lost,
       .cost = duration_ns ? static_cast<double>(cost_ns) / static_cast<double>(duration_ns) : 0});
}

// The recording up to `until`, since the last profile was handed over.
void Session::fill_meta(Profile& profile, uint64_t until) {
  Meta& meta = profile.meta;
  meta.kernel = kernel_release();
  meta.host = host_name();
  for (const std::string& word : options_.target.command)
    meta.command += (meta.command.empty() ? "" : " ") + word;
  meta.cpus = kernel_->clocks().cpus(since_);
  meta.degraded = kernel_->clocks().absences(since_, until);
  meta.measured = options_.measure;
  meta.start_unix_ns = started_unix_ + (since_ - started_);
  meta.duration_ns = until - since_;
  meta.paused_ns = std::exchange(paused_ns_, 0);
  meta.frequency_hz = options_.frequency_hz;
  const uint64_t watched_ns = std::exchange(since_watched_ns_, drained_watched_ns_);
  meta.unwatched_ns =
      meta.duration_ns - std::min(meta.duration_ns, drained_watched_ns_ - watched_ns);
  Totals now = totals();
  add_difference(reported_, now, meta);
  meta.cost_kernel_ns = kernel_cost_ns(reported_, now, *budget_);
  meta.counters["hooks not attached again"] = budget_->unhooked();  // up to now: it lasts
  reported_ = std::move(now);
  since_ = until;
  meta.degraded.insert(meta.degraded.end(), degraded_.begin(), degraded_.end());
  for (const Capability& c : kernel_->hooks().capabilities())
    if (!c.works) meta.degraded.push_back(c.name + ": " + c.how + "; " + c.costs);
  meta.counted_functions = calls_.functions;
  meta.counted_by = calls_.how;
  if (!calls_.refused.empty())
    meta.degraded.push_back("calls of " + std::to_string(calls_.refused.size()) +
                            " functions cannot be counted here: " + listed(calls_.refused));
  for (const std::string& w : user_symbols_.warnings()) meta.degraded.push_back(w);
}

// Of what had no room or could not be done, up to now.
std::map<std::string, uint64_t> Session::counters() const {
  std::map<std::string, uint64_t> all = {
      {"shared objects forgotten", parties_.forgotten()},
      {"processes with unreadable mappings", processes_.unreadable()},
      {"samples without a stack for want of memory", recorder_->without_stack()},
      {"samples of objects forgotten", recorder_->forgotten()},
      {"ended processes without a row of their own", processes_.folded()},
      {"ended threads without a row of their own", processes_.folded_threads()},
      {"owners of sockets without room", kernel_->owners().without_room()},
      {"calls not counted, since they interrupted counting", kernel_->calls().missed()},
      {"process events lost", sideband_ ? sideband_->lost() : 0},
  };
  all.merge(kernel_counters(kernel_->stats()));
  return all;
}

}  // namespace pkprof
