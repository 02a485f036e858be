// SPDX-License-Identifier: Apache-2.0
#include "debox/session.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "attribution/sources.h"
#include "base/clock.h"
#include "base/signals.h"
#include "debox/async_feed.h"
#include "debox/debox_wire.h"
#include "debox/names.h"
#include "debox/programs.h"
#include "debox/side.h"
#include "debox/stacks.h"
#include "debox/totals.h"
#include "debox/trace.h"
#include "kernel/kernel_symbols.h"
#include "probe/facts.h"
#include "probe/pid_namespace.h"
#include "process/callers_limits.h"
#include "process/child.h"

namespace pkprof {
namespace {

constexpr uint64_t look_interval_ns = 50'000'000;

class DeboxSession {
 public:
  explicit DeboxSession(const DeboxOptions& options) : options_(options) {}
  Result<DeboxRun> run();

 private:
  Result<> prepare();
  Result<> watch(uint32_t pid);
  Result<> choose_kinds();
  Result<> serve_programs();
  Result<> wait();
  [[nodiscard]] bool all_have_ended() const;
  Result<bool> take();  // whether there may be more
  void keep(SlowCall&& slow);
  void name_places() { names_->add_places(side_->places()); }
  void name_new_places();                    // if there are any
  [[nodiscard]] SystemCalls result() const;  // so far
  void show_interval();
  [[nodiscard]] uint64_t interval_ns() const;
  [[nodiscard]] std::vector<std::string> missing() const;

  const DeboxOptions& options_;
  // Once there is something to be brought to its end: what is read before may be on a disk that
  // does not answer.
  std::optional<Signals> signals_;
  std::optional<Child> child_;
  std::optional<DeboxNames> names_;
  std::optional<DeboxStacks> stacks_;
  std::optional<DeboxSide> side_;
  std::optional<DeboxPrograms> programs_;
  std::vector<DeboxSide::Events> events_;
  uint32_t wants_ = DB_CALLS_ALL | DB_SLEEPS | DB_FAULTS;  // of threads that are followed
  std::optional<RunningShare> cost_;
  uint64_t elsewhere_ns_ = 0;              // what the recording beside cost
  std::unique_ptr<AsyncFeed> async_feed_;  // goes before side_, whose memory it uses
  std::vector<std::string> degraded_;
  std::vector<SlowCall> slowest_;  // a heap: the one that is to go first is in front
  bool wanted_ = true;
  uint64_t own_cpu_ns_ = 0;  // of this process: up to the start, then while it went on
  SystemCalls shown_;        // as it was when it was shown last
  uint64_t next_shown_ = 0;
  uint32_t places_seen_ = 0;
  uint64_t started_ = 0;
  uint64_t stopped_ = 0;
};

Result<> DeboxSession::prepare() {
  if (const auto numbers = pid_namespace(); !numbers || *numbers)
    return fail(
        "debox follows threads by the machine's numbers, and this is a PID namespace of its "
        "own: run it outside, with -p or --attach");
  auto programs = DeboxPrograms::bind(!options_.command.empty(), options_.attach);
  if (!programs) return std::unexpected(programs.error());
  programs_.emplace(std::move(*programs));
  if (!options_.command.empty()) {
    const std::string& name = programs_->command_socket();
    auto child = Child::spawn(options_.command, options_.user,
                              [&name] { setenv(DEBOX_WIRE_ENVIRONMENT, name.c_str(), 1); });
    if (!child) return std::unexpected(child.error());
    child_.emplace(std::move(*child));
  }
  raise_limits();  // descriptors: three for each process that is served, and as many for each
                   // thread
  auto symbols =
      std::async(std::launch::async | std::launch::deferred, [] { return load_kernel_symbols(); });
  auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  auto loaded = symbols.get();
  if (!loaded) degraded_.push_back(loaded.error().message + ": places in the kernel have no names");
  names_.emplace(loaded ? std::optional(std::move(*loaded)) : std::nullopt, options_.lines);
  DeboxSideOptions wanted{.symbols = names_->symbols(), .traced = {}, .stacks = options_.stacks};
  if (!options_.trace.empty()) {
    auto traced = choose_traced(*facts, names_->symbols(), options_.trace, degraded_);
    if (!traced) return std::unexpected(traced.error());
    wanted.traced = std::move(*traced);
  }
  auto side = DeboxSide::load(*facts, wanted);
  if (!side) return std::unexpected(side.error());
  side_.emplace(std::move(*side));
  if (side_->traces()) wants_ |= DB_TRACE;
  if (options_.elsewhere) {
    auto started = AsyncFeed::start(*facts, names_->symbols(), side_->memory(), options_.budget);
    if (started)
      async_feed_ = std::move(*started);
    else
      degraded_.push_back(started.error().message +
                          ": what the kernel does for calls elsewhere is not known");
  }
  if (auto r = choose_kinds(); !r) return r;
  if (const auto refused = side_->attach_trace(*facts); !refused.empty())
    degraded_.push_back("traces are without " + std::to_string(refused.size()) +
                        " functions that cannot be attached to: " + refused.front() +
                        (refused.size() > 1 ? " and others" : ""));
  cost_.emplace(side_->cost());
  if (auto r = side_->attach(); !r) return r;
  if (options_.stacks) {
    if (auto stacks = DeboxStacks::open())
      stacks_.emplace(std::move(*stacks));
    else
      degraded_.push_back(stacks.error().message + ": there are no stacks");
  }
  if (child_ && !options_.serve_only)
    if (auto r = watch(static_cast<uint32_t>(child_->pid())); !r) return r;
  for (const uint32_t pid : options_.pids)
    if (auto r = watch(pid); !r) return r;
  if (auto r = serve_programs(); !r) return r;
  if (options_.pids.empty() && (!child_ || options_.serve_only)) return {};
  side_->want_records(options_.slowest || options_.each ? 0 : UINT64_MAX);
  return side_->attach_calls();
}

Result<> DeboxSession::choose_kinds() {
  if (options_.calls.empty()) return {};
  std::vector<uint32_t> kinds;
  for (const std::string& name : options_.calls) {
    const size_t before = kinds.size();
    for (const bool compat : {false, true})
      if (const auto number = syscall_number(name, compat); number && *number < DB_CALLS)
        kinds.push_back(*number + (compat ? DB_CALLS : 0));
    if (kinds.size() == before) return fail("there is no system call " + name);
  }
  side_->want_kinds(kinds);
  return {};
}

Result<> DeboxSession::serve_programs() {
  DeboxServer::Options options{};
  options.place_name = [this](uint32_t place) {
    if (!names_->places().contains(place)) name_new_places();
    return names_->place(place);
  };
  if (auto r = programs_->serve_attached(*side_, options); !r || !child_) return r;
  if (options_.serve_only) {
    // Where nothing is followed, whoever asks is served: its own records are all that it can get.
    options.serves = [](uint32_t) { return true; };
  } else {
    options.serves = [this](uint32_t pid) { return side_->watches(pid); };
    options.wants = wants_;
    options.begets = options_.follow ? wants_ : 0;
    options.events_are_watched = !events_.empty();
  }
  return programs_->serve_command(*side_, std::move(options));
}

// All of its threads; those that it begins meanwhile are the kernel side's.
Result<> DeboxSession::watch(uint32_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code error;
  const std::filesystem::directory_iterator threads(tasks, error);
  if (error) return fail("process " + std::to_string(pid) + ": " + error.message());
  if (stacks_) stacks_->add(pid);
  for (const auto& thread : threads) {
    db_watched who{};
    who.tid = static_cast<uint32_t>(std::stoul(thread.path().filename().string()));
    who.pid = pid;
    who.wants = wants_;
    who.begets = options_.follow ? wants_ : 0;
    who.traces = side_->traces() ? DB_OWN_TRACES : 0;
    if (auto r = side_->watch(who); !r) return r;
  }
  if (options_.slowest || options_.each)
    events_.push_back(side_->watch_events(pid, true, true, true));
  return {};
}

// Reading the table takes a while, and a program may ask for what is in no table, again and again.
void DeboxSession::name_new_places() {
  const uint32_t there = side_->places_there();
  if (there == places_seen_) return;
  places_seen_ = there;
  name_places();
}

void DeboxSession::keep(SlowCall&& slow) {
  const debox_record& record = slow.record;
  if (options_.each && record.wall_ns >= options_.min_ns) {
    if (!names_->know(slow)) name_new_places();
    wanted_ = wanted_ && options_.each(slow, call_name(record), names_->places());
  }
  const auto slower = [](const SlowCall& a, const SlowCall& b) {
    return a.record.wall_ns > b.record.wall_ns;
  };
  if (!options_.slowest) return;
  if (slowest_.size() == options_.slowest) {
    if (record.wall_ns <= slowest_.front().record.wall_ns) return;
    std::ranges::pop_heap(slowest_, slower);
    slowest_.pop_back();
  }
  slowest_.push_back(std::move(slow));
  std::ranges::push_heap(slowest_, slower);
  if (slowest_.size() < options_.slowest) return;
  const uint64_t enough = slowest_.front().record.wall_ns + 1;
  side_->want_records(options_.each ? std::min(enough, options_.min_ns) : enough);
}

Result<bool> DeboxSession::take() {
  const uint64_t now = monotonic_ns();
  std::vector<TakenCall> taken;
  auto more = side_->take_records([&](TakenCall&& call) { taken.push_back(std::move(call)); });
  // What a process did before its record was made is there now.
  if (stacks_) stacks_->take_events();
  for (TakenCall& call : taken)
    keep(stacks_ ? stacks_->named(std::move(call)) : std::move(call.call));
  // A record comes a little later than its call ended.
  constexpr uint64_t late_ns = 10'000'000;
  if (stacks_) stacks_->forget(now - late_ns);
  return more;
}

// The processes that were named; what they began is not waited for.
bool DeboxSession::all_have_ended() const {
  const auto ended = [](uint32_t pid) {
    return kill(static_cast<pid_t>(pid), 0) && errno == ESRCH;
  };
  return std::ranges::all_of(options_.pids, ended) && std::ranges::all_of(options_.attach, ended);
}

Result<> DeboxSession::wait() {
  const uint64_t end =
      options_.seconds > 0 ? started_ + static_cast<uint64_t>(options_.seconds * 1e9) : UINT64_MAX;
  std::vector<pollfd> fds;
  bool more_to_serve = false;
  while (wanted_) {
    if (child_ ? child_->ended() : all_have_ended()) break;
    fds = {{signals_->fd(), POLLIN, 0}, {side_->records_fd(), POLLIN, 0}};
    for (const int fd : programs_->poll_fds()) fds.push_back({fd, POLLIN, 0});
    if (stacks_) fds.push_back({stacks_->poll_fd(), POLLIN, 0});
    const uint64_t now = monotonic_ns();
    if (now >= end) break;
    uint64_t next = std::min({now + look_interval_ns, end, cost_->turn(now)});
    if (options_.show) next = std::min(next, next_shown_);
    if (async_feed_) next = std::min(next, async_feed_->turn());
    const uint64_t then = monotonic_ns();
    const uint64_t left = next > then && !more_to_serve ? next - then : 0;
    const timespec timeout{0, static_cast<long>(left)};
    ppoll(fds.data(), fds.size(), &timeout, nullptr);
    if ((fds[0].revents & POLLIN) && signals_->take()) break;
    more_to_serve = programs_->serve();
    if (auto more = take(); !more) return std::unexpected(more.error());
    show_interval();
  }
  return {};
}

void DeboxSession::show_interval() {
  const uint64_t now = monotonic_ns();
  if (!options_.show || now < next_shown_) return;
  name_places();
  SystemCalls whole = result();
  wanted_ = wanted_ && options_.show(calls_since(whole, shown_));
  shown_ = std::move(whole);
  next_shown_ += interval_ns();
}

uint64_t DeboxSession::interval_ns() const {
  return static_cast<uint64_t>(options_.interval * 1e9);
}

std::vector<std::string> DeboxSession::missing() const {
  std::vector<std::string> sentences = degraded_;
  const auto say = [&sentences](uint64_t count, const std::string& what) {
    if (count) sentences.push_back(std::to_string(count) + " " + what);
  };
  const db_stats stats = side_->stats();
  say(stats.threads_full, "threads found no room: their calls are not here");
  say(stats.kinds_full, "calls are in no row: there are too many kinds of them");
  say(stats.places_full, "times a place had no room: it has no name");
  say(stats.unseen,
      "times a thread came back to its CPU unseen: how long it was gone is the scheduler's word, "
      "its waker is not known");
  if (stacks_)
    say(stacks_->lost(), "times what a process mapped had no room: stacks may lack names");
  say(stats.sleeps_full, "sleeps are in no row: there are too many places");
  for (const DeboxServer& server : programs_->servers()) {
    say(server.refused(), "times a program was not served: there were too many at once");
    say(server.threads_refused(),
        "times a thread was not served: its process, its user or all had as much memory for "
        "records "
        "as they may");
    if (child_ && !options_.serve_only)
      say(server.marked(), "threads marked their calls themselves: these are not here");
  }
  const bool slow_lost =
      slowest_.size() < options_.slowest ||
      (!slowest_.empty() && stats.lost_longest_ns > slowest_.front().record.wall_ns);
  if (options_.each || slow_lost) say(stats.records_lost, "records were lost: they came too fast");
  return sentences;
}

SystemCalls DeboxSession::result() const {
  SystemCalls out = read_totals(*side_, *names_);
  for (size_t i = 0; i < options_.command.size(); ++i)
    out.command += (i ? " " : "") + options_.command[i];
  out.duration_ns = (stopped_ ? stopped_ : monotonic_ns()) - started_;
  out.cost_kernel_ns = (async_feed_ ? async_feed_->cost_ns() : elsewhere_ns_) +
                       static_cast<uint64_t>(cost_->share() * static_cast<double>(out.duration_ns));
  out.cost_user_ns = stopped_ ? own_cpu_ns_ : process_ns() - own_cpu_ns_;
  out.slowest = slowest_;
  std::ranges::sort(out.slowest, std::greater{},
                    [](const SlowCall& slow) { return slow.record.wall_ns; });
  for (const auto& [r, trace, frames] : out.slowest)
    out.names[SystemCalls::number_of(r)] = call_name(r);
  out.degraded = missing();
  return out;
}

Result<DeboxRun> DeboxSession::run() {
  DeboxRun out;
  if (auto r = prepare(); !r) return std::unexpected(r.error());
  if (options_.begins)
    if (auto r = options_.begins(); !r) return std::unexpected(r.error());
  signals_.emplace();
  started_ = monotonic_ns();
  next_shown_ = started_ + interval_ns();
  own_cpu_ns_ = process_ns();
  // What takes long at first is not to keep us from the first records.
  if (async_feed_) async_feed_->turn();
  if (child_)
    if (auto r = child_->go(); !r) {
      out.command_status = child_->status();
      out.command_error = r.error().message;
      return out;
    }
  if (auto r = wait(); !r) return std::unexpected(r.error());
  stopped_ = monotonic_ns();
  own_cpu_ns_ = process_ns() - own_cpu_ns_;
  cost_->close(stopped_);
  side_->detach_calls();
  side_->detach_trace();
  if (async_feed_) elsewhere_ns_ = async_feed_->cost_ns();
  if (async_feed_ && async_feed_->watched() < 0.99) {
    char share[32];
    std::snprintf(share, sizeof share, "%.0f %%", 100 * async_feed_->watched());
    degraded_.push_back(std::string("what is done elsewhere was told apart ") + share +
                        " of the time, to keep the budget: ASYNC is of that");
  }
  async_feed_.reset();
  for (bool more = true; more;) {
    auto taken = take();
    if (!taken) return std::unexpected(taken.error());
    more = *taken;
  }
  name_places();
  out.calls = result();
  if (child_) out.command_status = child_->status();
  return out;
}

}  // namespace

Result<DeboxRun> watch_calls(const DeboxOptions& options) {
  return DeboxSession(options).run();
}

}  // namespace pkprof
