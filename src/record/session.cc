// SPDX-License-Identifier: Apache-2.0
#include "record/session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "base/clock.h"
#include "process/callers_limits.h"
#include "process/targets.h"
#include "record/session_impl.h"

namespace pkprof {

std::string Session::listed(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

Result<> Session::prepare() {
  raise_limits();
  if (auto r = check_target(options_.target); !r) return r;
  if (!options_.target.command.empty()) {
    auto child = Child::spawn(options_.target.command, options_.target.user);
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
  auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  facts_.emplace(std::move(*facts));
  if (options_.calls) {
    side.calls = find_call_facilities(*facts_);
    if (!side.calls.any()) return fail("counting calls: " + side.calls.refused);
  }
  auto kernel = LoadedKernel::load(*facts_, side);
  if (!kernel) return std::unexpected(kernel.error());
  overhead_ = kernel->overhead();
  if (auto loaded = symbols.get())
    kernel_symbols_.emplace(std::move(*loaded));
  else
    degraded_.push_back(loaded.error().message);
  // What counts calls tells processes without their programs: those are by what they map, then. It
  // is opened when the overhead is measured, which has thousands of events for it.
  const auto maps = options_.calls ? Sideband::Maps::yes : Sideband::Maps::no;
  const auto cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  if (auto band = Sideband::open(Sideband::ring_bytes_for(cpus), maps))
    sideband_.emplace(std::move(*band));
  else
    degraded_.push_back(band.error().message +
                        ": programs that a process ran one after the other are not told apart");
  auto attached = std::move(*kernel).attach(kernel_symbols_ ? &functions : nullptr);
  if (!attached) return std::unexpected(attached.error());
  kernel_.emplace(std::move(*attached));
  auto mappings = Mappings::open(kernel_->mapped());
  if (!mappings) return std::unexpected(mappings.error());
  mappings_.emplace(std::move(*mappings));
  recorder_.emplace(kernel_symbols_ ? &*kernel_symbols_ : nullptr, user_symbols_, processes_);
  recorder_->fetch_stacks_by([this](uint64_t number) { return kernel_->tables().stack(number); });
  select_processes(processes_, options_.target, child_ ? static_cast<uint32_t>(child_->pid()) : 0);
  return {};
}

Result<> Session::start() {
  if (options_.calls && !is_to_look())
    if (auto r = attach_calls(options_.calls->functions); !r) return r;
  budget_.emplace(
      *kernel_,
      BudgetKeeper::Options{.budget = options_.budget, .calls = options_.calls.has_value()},
      overhead_);
  if (options_.begins_paused) {
    kernel_->disable(WhileOff::clock_stands_still);
    started_ = kernel_->clocks().now();
  } else {
    started_unix_ = unix_ns();
    if (auto r = kernel_->enable(); !r) return r;
    started_ = kernel_->clocks().started();
  }
  drained_ = started_;
  drained_at_ = monotonic_ns();
  since_ = started_;
  budget_->begin();
  if (options_.begins_paused) {
    budget_->turn_off(WhileOff::clock_stands_still);
    paused_ = true;
    paused_at_ = monotonic_ns();
    if (options_.progress) tell_progress();
  }
  kernel_->calls().count(options_.calls && !is_to_look());
  return {};
}

// What was recorded up to here is settled as at an end: what is seen later of a socket may be of
// another one that has its place. What is known of files holds, since who makes them dirty is seen
// meanwhile, too.
void Session::stop_watching(WhileOff clock) {
  budget_->turn_off(clock);
  if (auto r = drain(Drain::end); !r)
    degraded_.push_back("when it was paused: " + r.error().message);
  recorder_->give_up_objects();
  parties_.forget_fading();
}

void Session::pause() {
  if (kernel_->clocks().enabled()) {
    stop_watching(WhileOff::clock_stands_still);
  } else {
    kernel_->disable(WhileOff::clock_stands_still);
    if (auto r = drain(); !r) degraded_.push_back("when it was paused: " + r.error().message);
  }
  stand_for_all(drained_);  // what comes after it stands for nothing before it
  paused_ = true;
  paused_at_ = monotonic_ns();
  if (options_.progress) tell_progress();
}

Result<> Session::go_on() {
  if (auto r = budget_->turn_on(); !r) return r;
  if (started_unix_)
    paused_ns_ += monotonic_ns() - paused_at_;
  else
    started_unix_ = unix_ns();
  paused_ = false;
  budget_->begin_windows();
  return {};
}

bool Session::keep_budget() {
  const bool watching = kernel_->clocks().enabled();
  if (budget_->keep() == watching) return true;
  if (watching) {
    stop_watching(WhileOff::clock_goes_on);
    return true;
  }
  auto r = budget_->turn_on();
  if (!r) degraded_.push_back("it ended early: " + r.error().message);
  return r.has_value();
}

bool Session::obey() {
  for (const Control::Command command : options_.control->take()) {
    switch (command) {
      case Control::Command::enable:
        if (!paused_) break;
        if (auto r = go_on(); !r) {
          degraded_.push_back("it could not go on: " + r.error().message);
          return false;
        }
        break;
      case Control::Command::disable:
        if (!paused_) pause();
        break;
      case Control::Command::stop:
        options_.control->answer();
        return false;
      case Control::Command::ping:
        break;
    }
    options_.control->answer();
  }
  return true;
}

Result<> Session::attach_calls(const std::vector<std::string>& functions) {
  if (!kernel_symbols_) return fail("counting calls: " + degraded_.front());
  auto targets = find_call_targets(*kernel_symbols_, functions);
  if (!targets) return std::unexpected(targets.error());
  calls_ = kernel_->calls().attach(*facts_, *targets);
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
  budget_->programs_changed();
  if (auto meanwhile = cut(); !meanwhile) return std::unexpected(meanwhile.error());
  kernel_->calls().count(true);
  return {};
}

Result<> Session::wait() {
  uint64_t end =
      options_.seconds > 0 ? started_ + static_cast<uint64_t>(options_.seconds * 1e9) : UINT64_MAX;
  std::vector<pollfd> fds{{signals_->fd(), POLLIN, 0}};
  fds.push_back({options_.beside, POLLIN, 0});
  fds.push_back({-1, POLLIN, 0});  // the control's
  constexpr size_t own = 3;
  fds.push_back({sideband_ ? sideband_->poll_fd() : -1, POLLIN, 0});
  fds.push_back({mappings_->poll_fd(), POLLIN, 0});
  // The first look comes early: short-lived processes are best met alive.
  uint64_t next_drain = started_ + drain_interval_ns / 5;
  const auto interval = static_cast<uint64_t>(options_.interval * 1e9);
  uint64_t next_interval = interval ? started_ + interval : UINT64_MAX;
  uint64_t look_end = UINT64_MAX;
  if (is_to_look()) look_end = started_ + static_cast<uint64_t>(options_.calls->look_seconds * 1e9);
  for (;;) {
    const uint64_t now = kernel_->clocks().now();
    if (child_ && child_->ended()) break;
    if (now >= look_end) {
      if (auto r = count_what_is_hot(); !r) return r;
      look_end = UINT64_MAX;
      if (options_.seconds > 0) end += kernel_->clocks().now() - started_;
    }
    if (now >= end && look_end == UINT64_MAX) break;
    const int control = options_.control ? options_.control->fd() : -1;
    if (paused_ && control < 0 && !child_) break;  // nobody can have it go on
    if (!paused_ && !keep_budget()) break;
    if (now >= next_interval) {
      auto profile = cut();
      if (!profile || !options_.each(std::move(*profile))) break;
      // None twice for one that came late: we may have been stopped.
      next_interval += interval * (1 + (kernel_->clocks().now() - next_interval) / interval);
      next_drain = since_ + drain_interval_ns;  // the tables are empty now
    }
    if (now >= next_drain) {
      if (!kernel_->clocks().enabled()) {
        follow_processes();  // the tables are empty
      } else if (auto r = drain(); !r) {
        degraded_.push_back("it ended early: " + r.error().message);
        break;
      }
      if (options_.progress) tell_progress();
      // On the timeline's slots.
      next_drain =
          since_ + drain_interval_ns * (1 + (kernel_->clocks().now() - since_) / drain_interval_ns);
    }
    const uint64_t until = std::min({next_drain, next_interval, look_end, end});
    mappings_->collect();
    const auto up_to = [](uint64_t moment, uint64_t from) {
      return moment - std::min(moment, from);
    };
    const uint64_t left =
        std::min(up_to(until, kernel_->clocks().now()), up_to(budget_->next(), monotonic_ns()));
    const timespec timeout{static_cast<time_t>(left / 1'000'000'000),
                           static_cast<long>(left % 1'000'000'000)};
    fds[2].fd = control;
    if (ppoll(fds.data(), fds.size(), paused_ ? nullptr : &timeout, nullptr) < 0) {
      if (options_.ready && !options_.ready()) break;
      continue;
    }
    if ((fds[0].revents & POLLIN) && signals_->take()) break;
    constexpr short gone = POLLHUP | POLLERR | POLLNVAL;
    if ((fds[1].revents & gone) || (fds[1].revents && !options_.ready())) break;
    if (fds[2].revents && !obey()) break;
    // A ring that fills ahead of time is emptied ahead of time; that of the mappings, by collect().
    if (std::any_of(fds.begin() + own, fds.end() - 1, [](const pollfd& f) { return f.revents; }))
      next_drain = 0;
  }
  budget_->close();
  if (look_end != UINT64_MAX)
    return fail("counting calls: it ended before it was known what is hot; name functions");
  return {};
}

Result<Recording> Session::run() {
  if (auto r = prepare(); !r) return std::unexpected(r.error());
  signals_.emplace();  // up to here there is nothing to keep, and one ends pkprof
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
  if (!started_unix_) {
    started_unix_ = unix_ns();
    degraded_.push_back("nothing was recorded: it was paused up to its end");
  }
  stopped_ = kernel_->disable(WhileOff::clock_goes_on);
  own_cpu_ns_ = budget_->user_ns();
  kernel_->hooks().detach();  // what follows takes a while, and needs no hooks
  kernel_->calls().detach();
  if (auto r = finish(recording.profile); !r) return std::unexpected(r.error());
  if (child_) recording.command_status = child_->ended() ? child_->status() : 0;
  return recording;
}

Result<Recording> record(const RecordOptions& options) {
  return Session(options).run();
}

}  // namespace pkprof
