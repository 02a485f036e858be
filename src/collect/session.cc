// SPDX-License-Identifier: Apache-2.0
#include "collect/session.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>

#include "collect/budget_keeper.h"
#include "collect/child.h"
#include "collect/clock.h"
#include "collect/cost.h"
#include "collect/facts.h"
#include "collect/interrupts.h"
#include "collect/kernel_side.h"
#include "collect/kernel_symbols.h"
#include "collect/mappings.h"
#include "collect/parties.h"
#include "collect/processes.h"
#include "collect/recorder.h"
#include "collect/sideband.h"
#include "collect/signals.h"
#include "collect/so_far.h"
#include "collect/targets.h"

namespace pkprof {
namespace {

constexpr uint64_t drain_interval_ns = 1'000'000'000;
constexpr uint64_t settle_interval_ns = 5'000'000'000;  // of what fell into pauses of the hooks

// The first of them, for a message.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

class Session {
 public:
  explicit Session(const RecordOptions& options)
      : options_(options), processes_(user_symbols_, options.threads) {}
  Result<Recording> run();

 private:
  Result<> prepare();
  Result<> start();
  Result<> wait();
  void follow_processes();  // also on CPUs that have come back, from here on
  Result<> drain(Spread::When when = Spread::When::meanwhile);
  void add_what_has_no_sample(uint64_t idle_ns);
  Result<> finish(Profile& profile);
  Result<Profile> cut();
  [[nodiscard]] bool is_to_look() const {
    return options_.calls && options_.calls->functions.empty();
  }
  Result<> attach_calls(const std::vector<std::string>& functions);
  Result<> count_what_is_hot();
  [[nodiscard]] std::map<std::string, uint64_t> counters() const;
  void fill_meta(Profile& profile, uint64_t until);
  void tell_progress();
  uint64_t interrupt_ns();
  [[nodiscard]] uint64_t period_ns() const { return 1'000'000'000 / options_.frequency_hz; }

  RecordOptions options_;
  Signals signals_;
  std::optional<Child> child_;
  std::vector<std::string> degraded_;
  std::optional<KernelSymbols> kernel_symbols_;
  std::optional<KernelSymbols> later_symbols_;
  UserSymbols user_symbols_;
  Processes processes_;
  std::optional<KernelFacts> facts_;
  std::optional<KernelSide> kernel_;
  KernelSide::CallsAttached calls_;
  std::optional<Sideband> sideband_;
  std::optional<Mappings> mappings_;
  std::vector<ProcessEvent> events_ahead_;  // of after the tables were taken
  Parties parties_;
  std::optional<Recorder> recorder_;
  std::optional<BudgetKeeper> budget_;
  UnseenInterrupts unseen_;
  uint64_t settled_ = 0;             // when what fell into pauses was charged last
  uint64_t drained_ = 0;             // when the tables were taken last
  uint64_t idle_ns_ = 0;             // for how long the CPUs that were idle then had been
  uint64_t drained_watched_ns_ = 0;  // for how long the hooks on interrupts were on up to then
  HookOverhead overhead_;
  [[nodiscard]] SoFar so_far(uint64_t until) const;
  SoFar told_;  // what profiles were told
  uint64_t told_lost_ns_ = 0;
  uint64_t since_ = 0;  // up to when they were
  uint64_t interrupt_ns_ = 0;
  uint64_t started_ = 0;
  uint64_t started_unix_ = 0;
  uint64_t stopped_ = 0;
  uint64_t own_cpu_ns_ = 0;  // of this process, while it recorded
  bool owners_asked_ = true;
  uint64_t next_ask_ = 0;  // when it may be asked again who holds which socket
};

Result<> Session::prepare() {
  // Kernels before 5.11 charge BPF memory to this limit; where it cannot be raised, loading says
  // so.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  if (auto r = check_target(options_.target); !r) return r;
  if (!options_.target.command.empty()) {
    auto child = Child::spawn(options_.target.command);
    if (!child) return std::unexpected(child.error());
    child_.emplace(std::move(*child));
  }
  // What takes some ten milliseconds each is done side by side.
  KnownFunctions functions;
  auto symbols = std::async(std::launch::async | std::launch::deferred, [&functions] {
    auto loaded = load_kernel_symbols();
    if (loaded) functions = find_functions(*loaded);
    return loaded;
  });
  KernelSideOptions side;
  side.frequency_hz = options_.frequency_hz;
  side.threads = options_.threads;
  side.hooks = options_.hooks;
  side.measure = options_.measure;
  side.mappings = true;
  // What counts calls tells processes without their programs: those are by what they map, then.
  const auto maps = options_.calls ? Sideband::Maps::yes : Sideband::Maps::no;
  auto watching = std::async(std::launch::async | std::launch::deferred, [maps] {
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return Sideband::open(Sideband::ring_bytes_for(static_cast<uint32_t>(cpus)), maps);
  });
  auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  facts_.emplace(std::move(*facts));
  if (options_.calls) {
    side.calls = find_call_facilities(*facts_);
    if (!side.calls.any()) return fail("counting calls: " + side.calls.refused);
  }
  auto kernel = KernelSide::load(*facts_, side);
  if (!kernel) return std::unexpected(kernel.error());
  kernel_.emplace(std::move(*kernel));
  overhead_ = kernel_->measure_overhead();
  if (auto loaded = symbols.get())
    kernel_symbols_.emplace(std::move(*loaded));
  else
    degraded_.push_back(loaded.error().message);
  const KernelSymbols* names = kernel_symbols_ ? &*kernel_symbols_ : nullptr;
  kernel_->tell_functions(names ? &functions : nullptr);
  if (auto band = watching.get())
    sideband_.emplace(std::move(*band));
  else
    degraded_.push_back(band.error().message +
                        ": programs that a process ran one after the other are not told apart");
  auto mappings = Mappings::open(kernel_->mapped());
  if (!mappings) return std::unexpected(mappings.error());
  mappings_.emplace(std::move(*mappings));
  recorder_.emplace(names, user_symbols_, processes_, period_ns());
  select_processes(processes_, options_.target, child_ ? static_cast<uint32_t>(child_->pid()) : 0);
  // It is to be known before the end: not while it is recorded.
  if (options_.progress) static_cast<void>(interrupt_ns());
  return {};
}

Result<> Session::start() {
  if (auto r = kernel_->attach(); !r) return r;
  if (options_.hooks) owners_asked_ = kernel_->ask_owners();
  if (options_.calls && !is_to_look())
    if (auto r = attach_calls(options_.calls->functions); !r) return r;
  budget_.emplace(*kernel_,
                  BudgetKeeper::Options{.frequency_hz = options_.frequency_hz,
                                        .budget = options_.budget,
                                        .measure = options_.measure,
                                        .calls = options_.calls.has_value()},
                  overhead_);
  started_unix_ = unix_ns();
  if (auto r = kernel_->enable(); !r) return r;
  started_ = kernel_->started();
  budget_->begin(started_);
  recorder_->weigh_by(
      [this](uint8_t segment) { return budget_->segments().weight(segment, drained_); });
  drained_ = started_;
  since_ = started_;
  settled_ = started_;
  kernel_->count_calls(options_.calls && !is_to_look());
  return {};
}

Result<> Session::attach_calls(const std::vector<std::string>& functions) {
  if (!kernel_symbols_) return fail("counting calls: " + degraded_.front());
  auto targets = find_call_targets(*kernel_symbols_, functions);
  if (!targets) return std::unexpected(targets.error());
  calls_ = kernel_->attach_calls(*facts_, *targets);
  if (calls_.functions) return {};
  return fail("counting calls: the kernel lets none of these functions be counted: " +
              listed(calls_.refused));
}

// The look is over: what it shows as hot is counted, and the recording begins anew.
Result<> Session::count_what_is_hot() {
  const auto look = cut();
  if (!look) return std::unexpected(look.error());
  const std::vector<std::string> hot = hot_functions(*look);
  if (hot.empty()) return fail("counting calls: nothing ran in the kernel so far; name functions");
  if (auto r = attach_calls(hot); !r) return r;
  budget_->watch(HookGroup::calls);
  if (auto meanwhile = cut(); !meanwhile) return std::unexpected(meanwhile.error());
  kernel_->count_calls(true);
  return {};
}

Result<> Session::wait() {
  uint64_t end =
      options_.seconds > 0 ? started_ + static_cast<uint64_t>(options_.seconds * 1e9) : UINT64_MAX;
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
  fds.push_back({options_.beside, POLLIN, 0});
  constexpr size_t own = 2;
  fds.push_back({sideband_ ? sideband_->poll_fd() : -1, POLLIN, 0});
  fds.push_back({mappings_->poll_fd(), POLLIN, 0});
  // The first look comes early: short-lived processes are best met alive.
  uint64_t next_drain = started_ + drain_interval_ns / 5;
  const auto interval = static_cast<uint64_t>(options_.interval * 1e9);
  uint64_t next_interval = interval ? started_ + interval : UINT64_MAX;
  uint64_t look_end = UINT64_MAX;
  if (is_to_look()) look_end = started_ + static_cast<uint64_t>(options_.calls->look_seconds * 1e9);
  for (;;) {
    const uint64_t now = monotonic_ns();
    if (child_ && child_->ended()) break;
    if (now >= look_end) {
      if (auto r = count_what_is_hot(); !r) return r;
      look_end = UINT64_MAX;
      if (options_.seconds > 0) end += monotonic_ns() - started_;
    }
    if (now >= end && look_end == UINT64_MAX) break;
    const uint64_t next_turn = budget_->turn(now);
    if (now >= next_interval) {
      auto profile = cut();
      if (!profile || !options_.each(std::move(*profile))) break;
      // None twice for one that came late: we may have been stopped.
      next_interval += interval * (1 + (monotonic_ns() - next_interval) / interval);
      next_drain = since_ + drain_interval_ns;  // the tables are empty now
    }
    if (now >= next_drain) {
      if (auto r = drain(); !r) {
        degraded_.push_back("it ended early: " + r.error().message);
        break;
      }
      if (options_.progress) tell_progress();
      // On the timeline's slots.
      next_drain = since_ + drain_interval_ns * (1 + (monotonic_ns() - since_) / drain_interval_ns);
    }
    const uint64_t until = std::min({next_drain, next_turn, next_interval, look_end, end});
    mappings_->collect();
    const uint64_t then = monotonic_ns();  // turning the hooks on takes a while
    const uint64_t left = until > then ? until - then : 0;
    const timespec timeout{static_cast<time_t>(left / 1'000'000'000),
                           static_cast<long>(left % 1'000'000'000)};
    if (ppoll(fds.data(), fds.size(), &timeout, nullptr) < 0) {
      if (options_.ready && !options_.ready()) break;
      continue;
    }
    if ((fds[0].revents & POLLIN) && signals_.take()) break;
    constexpr short gone = POLLHUP | POLLERR | POLLNVAL;
    if ((fds[1].revents & gone) || (fds[1].revents && !options_.ready())) break;
    // A ring that fills ahead of time is emptied ahead of time; that of the mappings, by collect().
    if (std::any_of(fds.begin() + own, fds.end() - 1, [](const pollfd& f) { return f.revents; }))
      next_drain = 0;
  }
  budget_->close();
  if (look_end != UINT64_MAX)
    return fail("counting calls: it ended before it was known what is hot; name functions");
  return {};
}

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
  for (const uint32_t cpu : kernel_->sample_returned())
    if (auto r = sideband_ ? sideband_->follow(cpu) : Result<>(); !r)
      degraded_.push_back(r.error().message);
}

Result<> Session::drain(Spread::When when) {
  const bool last = when == Spread::When::last;
  auto tables = kernel_->take();
  if (!tables) return std::unexpected(tables.error());
  // What processes did up to now comes first, so that their samples find their mappings.
  follow_processes();
  for (const auto& [label, info] : tables->labels)
    processes_.add_label(label, info, mappings_->path_of(info.program));
  const uint64_t taken = last ? stopped_ : tables->taken;
  parties_.add(tables->votes, static_cast<double>(taken - drained_) / 1e9);
  const uint64_t watched_ns = budget_->watched_ns(HookGroup::interrupts, taken);
  const uint64_t on_ns = watched_ns - drained_watched_ns_;
  unseen_.estimate(tables->counts, on_ns, taken - drained_ - std::min(on_ns, taken - drained_));
  // What is handed over at intervals is its own timeline.
  if (options_.interval <= 0 && !options_.measure) {
    const uint64_t middle = drained_ + (taken - drained_) / 2;
    recorder_->begin_slot(static_cast<uint32_t>((middle - since_) / drain_interval_ns),
                          drain_interval_ns);
  }
  drained_ = taken;
  idle_ns_ = tables->idle_ns;
  drained_watched_ns_ = watched_ns;
  recorder_->add(*tables);
  const uint64_t now = monotonic_ns();
  if (when != Spread::When::meanwhile || now >= settled_ + settle_interval_ns) {
    recorder_->settle_unwatched(when, static_cast<double>(now - settled_) / 1e9);
    settled_ = now;
  }
  processes_.bury();
  const auto owner = [this](uint64_t object) { return kernel_->owner_of(object); };
  const auto parties = [&](uint64_t object) { return parties_.of(object, owner); };
  // Where there are many files it takes long: asking has a hundredth of the time.
  if (recorder_->resolve_owners(parties) && (last || monotonic_ns() >= next_ask_)) {
    const uint64_t before = monotonic_ns();
    const bool asked = kernel_->ask_owners();
    next_ask_ = monotonic_ns() + 100 * (monotonic_ns() - before);
    if (asked) recorder_->resolve_owners(parties);
  }
  if (last)
    recorder_->resolve_owners([&](uint64_t object) { return parties_.of(object, owner, true); });
  recorder_->make_room();
  return {};
}

void Session::add_what_has_no_sample(uint64_t idle_ns) {
  recorder_->add_idle_so_far(idle_ns);
  const uint64_t lost_ns = kernel_->stats().lost_ns;
  recorder_->add_special(uint64_t{PK_UNCLAIMED} + PK_LOST, lost_ns - told_lost_ns_);
  told_lost_ns_ = lost_ns;
}

Result<> Session::finish(Profile& profile) {
  const KernelSide::Rest rest = kernel_->take_rest();
  recorder_->add_rest(rest);
  parties_.add(rest.votes, 0);
  if (auto r = drain(Spread::When::last); !r) return r;
  add_what_has_no_sample(kernel_->idle_tail(stopped_));
  fill_meta(profile, stopped_);
  if (auto symbols = load_bpf_symbols()) {
    later_symbols_.emplace(std::move(*symbols));
    recorder_->add_kernel_symbols(&*later_symbols_);
  }
  recorder_->finish(profile, selection(processes_, options_.target), options_.stacks_of_others);
  return {};
}

// Of a sample. Measuring takes a while: once.
uint64_t Session::interrupt_ns() {
  if (!interrupt_ns_) interrupt_ns_ = CostMeter::measure_interrupt();
  return interrupt_ns_;
}

// What was since the last time; it is not in what comes after.
Result<Profile> Session::cut() {
  if (auto r = drain(Spread::When::interval); !r) return std::unexpected(r.error());
  add_what_has_no_sample(idle_ns_);
  Profile profile;
  fill_meta(profile, drained_);
  recorder_->finish(profile, selection(processes_, options_.target), options_.stacks_of_others);
  return profile;
}

SoFar Session::so_far(uint64_t until) const {
  SoFar now = SoFar::look(*kernel_, *budget_, until);
  if (stopped_) now.user_ns = own_cpu_ns_;
  now.counters = counters();
  return now;
}

void Session::tell_progress() {
  const SoFar now = so_far(drained_);
  const uint64_t duration_ns = drained_ - started_;
  if (duration_ns < drain_interval_ns / 2) return;  // of a moment there is nothing to say
  options_.progress({.duration_ns = duration_ns,
                     .samples = now.samples,
                     .lost = now.lost,
                     .cost = static_cast<double>(kernel_cost_ns({}, now, *budget_, interrupt_ns()) +
                                                 now.user_ns) /
                             static_cast<double>(duration_ns)});
}

// The recording up to `until`, since the last profile was handed over.
void Session::fill_meta(Profile& profile, uint64_t until) {
  Meta& meta = profile.meta;
  meta.kernel = kernel_release();
  meta.host = host_name();
  for (const std::string& word : options_.target.command)
    meta.command += (meta.command.empty() ? "" : " ") + word;
  meta.cpus = kernel_->cpus(since_);
  meta.degraded = kernel_->absences(since_, until);
  meta.measured = options_.measure;
  meta.start_unix_ns = started_unix_ + (since_ - started_);
  meta.duration_ns = until - since_;
  meta.frequency_hz = options_.frequency_hz;
  SoFar now = so_far(until);
  tell(told_, now, meta);
  meta.cost_kernel_ns = kernel_cost_ns(told_, now, *budget_, interrupt_ns());
  meta.counters["hooks not attached again"] = budget_->unhooked();  // up to now: it lasts
  told_ = std::move(now);
  since_ = until;
  meta.degraded.insert(meta.degraded.end(), degraded_.begin(), degraded_.end());
  for (const Capability& c : kernel_->capabilities())
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
      {"owners of sockets without room", kernel_->owners_without_room()},
      {"calls not counted, since they interrupted counting", kernel_->missed_calls()},
      {"process events lost", sideband_ ? sideband_->lost() : 0},
  };
  all.merge(kernel_counters(kernel_->stats()));
  return all;
}

Result<Recording> Session::run() {
  if (auto r = prepare(); !r) return std::unexpected(r.error());
  if (auto r = start(); !r) return std::unexpected(r.error());
  Recording recording;
  if (child_) {
    if (auto r = child_->go(); !r) {
      recording.command_status = child_->status();
      recording.command_error = options_.target.command[0] + ": " + r.error().message;
      return recording;
    }
    if (options_.started) options_.started(static_cast<uint32_t>(child_->pid()));
  }
  if (auto r = wait(); !r) return std::unexpected(r.error());
  stopped_ = kernel_->disable();
  own_cpu_ns_ = budget_->user_ns();
  budget_->stop(stopped_);  // what follows takes a while, and needs no hooks
  kernel_->detach_calls();
  if (auto r = finish(recording.profile); !r) return std::unexpected(r.error());
  if (child_) recording.command_status = child_->ended() ? child_->status() : 0;
  return recording;
}

}  // namespace

Result<Recording> record(const RecordOptions& options) {
  return Session(options).run();
}

}  // namespace pkprof
