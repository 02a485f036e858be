// SPDX-License-Identifier: Apache-2.0
#include "record/session.h"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/signals.h"
#include "cost/budget_keeper.h"
#include "record/gathering.h"
#include "record/prepared.h"

namespace pkprof {
namespace {

// What a recording does when: it begins, is paused and goes on, and ends.
class Session {
 public:
  Session(const RecordOptions& options, Prepared& prepared)
      : options_(options),
        prepared_(prepared),
        kernel_(prepared.kernel),
        gathering_(prepared, options, course_) {}
  Result<Recording> run();

 private:
  Result<> start();
  Result<> wait();
  bool do_what_is_due(uint64_t now);  // false: to end
  bool wait_for_what_is_next();       // false: to end
  void stop_watching(WhileOff clock);
  void pause();        // as --control asks
  Result<> go_on();    // begins, where nothing was recorded yet
  bool obey();         // what the control says; false: to end
  bool keep_budget();  // ends a window or begins one; false: to end
  [[nodiscard]] bool is_to_look() const {
    return options_.calls && options_.calls->functions.empty();
  }
  Result<> attach_calls(const std::vector<std::string>& functions);
  Result<> count_what_is_hot();
  void tell_progress();
  void end_early(const Error& error) {
    course_.degraded.push_back("it ended early: " + error.message);
  }

  const RecordOptions& options_;
  Prepared& prepared_;
  KernelSide& kernel_;
  Course course_;
  Gathering gathering_;
  Signals signals_;
  std::optional<BudgetKeeper> budget_;
  uint64_t paused_at_ = 0;  // last, CLOCK_MONOTONIC
  // When what is due, by the recording's clock.
  uint64_t end_ = UINT64_MAX;
  uint64_t next_drain_ = 0;
  uint64_t next_interval_ = UINT64_MAX;
  uint64_t look_end_ = UINT64_MAX;  // when it is known what is hot
};

Result<> Session::start() {
  if (options_.calls && !is_to_look())
    if (auto r = attach_calls(options_.calls->functions); !r) return r;
  budget_.emplace(
      kernel_,
      BudgetKeeper::Options{.budget = options_.budget, .calls = options_.calls.has_value()},
      prepared_.overhead);
  if (options_.begins_paused) {
    kernel_.disable(WhileOff::clock_stands_still);
    course_.started = kernel_.clocks().now();
  } else {
    course_.started_unix = unix_ns();
    if (auto r = kernel_.enable(); !r) return r;
    course_.started = kernel_.clocks().started();
  }
  gathering_.begin(*budget_);
  budget_->begin();
  if (options_.begins_paused) {
    budget_->turn_off(WhileOff::clock_stands_still);
    course_.paused = true;
    paused_at_ = monotonic_ns();
    if (options_.progress) tell_progress();
  }
  kernel_.calls().count(options_.calls && !is_to_look());
  return {};
}

// What was recorded up to here is settled as at an end.
void Session::stop_watching(WhileOff clock) {
  budget_->turn_off(clock);
  if (auto r = gathering_.drain(Gathering::Drain::end); !r)
    course_.degraded.push_back("when it was paused: " + r.error().message);
  gathering_.forget_what_moves();
}

void Session::pause() {
  if (kernel_.clocks().enabled()) {
    stop_watching(WhileOff::clock_stands_still);
  } else {
    kernel_.disable(WhileOff::clock_stands_still);
    if (auto r = gathering_.drain(); !r)
      course_.degraded.push_back("when it was paused: " + r.error().message);
  }
  gathering_.stand_for_all();  // what comes after it stands for nothing before it
  course_.paused = true;
  paused_at_ = monotonic_ns();
  if (options_.progress) tell_progress();
}

Result<> Session::go_on() {
  if (auto r = budget_->turn_on(); !r) return r;
  if (course_.started_unix)
    course_.paused_ns += monotonic_ns() - paused_at_;
  else
    course_.started_unix = unix_ns();
  course_.paused = false;
  budget_->begin_windows();
  return {};
}

bool Session::keep_budget() {
  const bool watching = kernel_.clocks().enabled();
  if (budget_->keep() == watching) return true;
  if (watching) {
    stop_watching(WhileOff::clock_goes_on);
    return true;
  }
  auto r = budget_->turn_on();
  if (!r) end_early(r.error());
  return r.has_value();
}

bool Session::obey() {
  for (const Control::Command command : options_.control->take()) {
    switch (command) {
      case Control::Command::enable:
        if (!course_.paused) break;
        if (auto r = go_on(); !r) {
          course_.degraded.push_back("it could not go on: " + r.error().message);
          return false;
        }
        break;
      case Control::Command::disable:
        if (!course_.paused) pause();
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
  if (!prepared_.symbols) return fail("counting calls: " + prepared_.degraded.front());
  auto targets = find_call_targets(*prepared_.symbols, functions);
  if (!targets) return std::unexpected(targets.error());
  course_.calls = kernel_.calls().attach(prepared_.facts, *targets);
  if (course_.calls.functions) return {};
  return fail("counting calls: the kernel lets none of these functions be counted: " +
              listed(course_.calls.refused));
}

// The look is over: what it shows as hot is counted, and the recording begins anew.
Result<> Session::count_what_is_hot() {
  const auto look = gathering_.cut();
  if (!look) return std::unexpected(look.error());
  const std::vector<std::string> hot = hot_functions(*look);
  if (hot.empty()) return fail("counting calls: nothing ran in the kernel so far; name functions");
  if (auto r = attach_calls(hot); !r) return r;
  budget_->programs_changed();
  if (auto meanwhile = gathering_.cut(); !meanwhile) return std::unexpected(meanwhile.error());
  kernel_.calls().count(true);
  look_end_ = UINT64_MAX;
  if (options_.seconds > 0) end_ += kernel_.clocks().now() - course_.started;
  return {};
}

void Session::tell_progress() {
  const Progress progress = gathering_.progress();
  // Of a moment there is little to say.
  if (progress.duration_ns >= Gathering::interval_ns / 2 || progress.paused)
    options_.progress(progress);
}

bool Session::do_what_is_due(uint64_t now) {
  if (!course_.paused && !keep_budget()) return false;
  if (now >= next_interval_) {
    auto profile = gathering_.cut();
    if (!profile || !options_.each(std::move(*profile))) return false;
    // None twice for one that came late: we may have been stopped.
    const auto interval = static_cast<uint64_t>(options_.interval * 1e9);
    next_interval_ += interval * (1 + (kernel_.clocks().now() - next_interval_) / interval);
    next_drain_ = gathering_.since() + Gathering::interval_ns;  // the tables are empty now
  }
  if (now >= next_drain_) {
    if (!kernel_.clocks().enabled()) {
      gathering_.follow_processes();  // the tables are empty
    } else if (auto r = gathering_.drain(); !r) {
      end_early(r.error());
      return false;
    }
    if (options_.progress) tell_progress();
    // On the timeline's slots.
    const uint64_t slots = (kernel_.clocks().now() - gathering_.since()) / Gathering::interval_ns;
    next_drain_ = gathering_.since() + Gathering::interval_ns * (1 + slots);
  }
  return true;
}

bool Session::wait_for_what_is_next() {
  const uint64_t until = std::min({next_drain_, next_interval_, look_end_, end_});
  prepared_.mappings.collect();
  if (prepared_.unfinished) prepared_.unfinished->collect();
  const auto up_to = [](uint64_t moment, uint64_t from) { return moment - std::min(moment, from); };
  const uint64_t left =
      std::min(up_to(until, kernel_.clocks().now()), up_to(budget_->next(), monotonic_ns()));
  const timespec timeout{static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
  const int sideband = prepared_.sideband ? prepared_.sideband->poll_fd() : -1;
  pollfd fds[] = {{signals_.fd(), POLLIN, 0},
                  {options_.beside, POLLIN, 0},
                  {options_.control ? options_.control->fd() : -1, POLLIN, 0},
                  {sideband, POLLIN, 0},
                  {prepared_.mappings.poll_fd(), POLLIN, 0},
                  {prepared_.unfinished ? prepared_.unfinished->poll_fd() : -1, POLLIN, 0}};
  const auto& [signal, beside, control, events, mapped, unfinished] = fds;
  if (ppoll(fds, std::size(fds), course_.paused ? nullptr : &timeout, nullptr) < 0)
    return !options_.ready || options_.ready();
  if ((signal.revents & POLLIN) && signals_.take()) return false;
  constexpr short gone = POLLHUP | POLLERR | POLLNVAL;
  if ((beside.revents & gone) || (beside.revents && !options_.ready())) return false;
  if (control.revents && !obey()) return false;
  // A ring that fills ahead of time is emptied ahead of time; those of mappings and stacks, by
  // collect().
  if (events.revents) next_drain_ = 0;
  return true;
}

Result<> Session::wait() {
  const auto after = [this](double seconds) {
    return course_.started + static_cast<uint64_t>(seconds * 1e9);
  };
  if (options_.seconds > 0) end_ = after(options_.seconds);
  // The first drain comes early: short-lived processes are best met alive.
  next_drain_ = course_.started + Gathering::interval_ns / 5;
  if (options_.interval > 0) next_interval_ = after(options_.interval);
  if (is_to_look()) look_end_ = after(options_.calls->look_seconds);
  for (;;) {
    const uint64_t now = kernel_.clocks().now();
    if (prepared_.child && prepared_.child->ended()) break;
    if (now >= look_end_) {
      if (auto r = count_what_is_hot(); !r) return r;
    } else if (now >= end_ && look_end_ == UINT64_MAX) {
      break;
    }
    // Nobody can have it go on.
    const int control = options_.control ? options_.control->fd() : -1;
    if (course_.paused && control < 0 && !prepared_.child) break;
    if (!do_what_is_due(now) || !wait_for_what_is_next()) break;
  }
  budget_->close();
  if (look_end_ != UINT64_MAX)
    return fail("counting calls: it ended before it was known what is hot; name functions");
  return {};
}

Result<Recording> Session::run() {
  if (auto r = start(); !r) return std::unexpected(r.error());
  Recording recording;
  std::optional<Child>& child = prepared_.child;
  if (child) {
    if (auto r = child->go(); !r) {
      recording.command_status = child->status();
      recording.command_error = options_.target.command[0] + ": " + r.error().message;
      return recording;
    }
    if (options_.started) options_.started(static_cast<uint32_t>(child->pid()));
  }
  if (auto r = wait(); !r) return std::unexpected(r.error());
  if (!course_.started_unix) {
    course_.started_unix = unix_ns();
    course_.degraded.push_back("nothing was recorded: it was paused up to its end");
  }
  course_.stopped = kernel_.disable(WhileOff::clock_goes_on);
  course_.own_cpu_ns = budget_->user_ns();
  kernel_.hooks().detach();  // what follows takes a while, and needs no hooks
  kernel_.calls().detach();
  auto profile = gathering_.finish();
  if (!profile) return std::unexpected(profile.error());
  recording.profile = std::move(*profile);
  recording.signal = signals_.last();
  if (child) recording.command_status = child->ended() ? child->status() : 0;
  return recording;
}

}  // namespace

Result<Recording> record(const RecordOptions& options) {
  RecordOptions resolved = options;
  const auto prepared = prepare(resolved);
  if (!prepared) return std::unexpected(prepared.error());
  return Session(resolved, **prepared).run();
}

}  // namespace pkprof
