// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

namespace pkprof {

Delivery::Delivery(Options options, std::unique_ptr<Sink> sink, Spool& spool,
                   std::function<void(const std::string& sentence)> tell)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      spool_(spool),
      tell_(std::move(tell)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Delivery::~Delivery() {
  thread_.request_stop();
  changed_.notify_all();
}

void Delivery::wake() {
  const std::lock_guard lock(mutex_);
  ++woken_;
  changed_.notify_all();
}

bool Delivery::empty_by(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [this] { return !spool_.oldest(options_.sink); });
}

Delivery::Figures Delivery::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

bool Delivery::send_oldest() {
  const auto cut = spool_.oldest(options_.sink);
  if (!cut) return true;
  const Result<> sent = sink_->put({.path = cut->path,
                                    .host = options_.host,
                                    .boot = cut->boot,
                                    .start_unix_ns = cut->start_unix_ns,
                                    .labels = options_.labels});
  const std::lock_guard lock(mutex_);
  if (sent) spool_.remove(options_.sink, cut->path);
  const bool was_failing = std::exchange(figures_.failing, !sent);
  if (sent) {
    ++figures_.sent;
    figures_.last_sent_unix = static_cast<uint64_t>(std::time(nullptr));
    if (was_failing) tell_("sink " + options_.sink + ": it takes cuts again");
    changed_.notify_all();
    return true;
  }
  ++figures_.errors;
  if (!was_failing)
    tell_("sink " + options_.sink + ": " + sent.error().message + "; cuts wait in the spool");
  return false;
}

// After an error for a while, which grows; else until there is something to send.
void Delivery::rest(const std::stop_token& stop) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::unique_lock lock(mutex_);
  if (pause_.count() == 0) {
    const uint64_t seen = woken_;
    changed_.wait(lock, stop, [&] { return woken_ != seen || spool_.oldest(options_.sink); });
    return;
  }
  const auto half = pause_.count() / 2;
  const std::chrono::milliseconds jittered(
      half + std::uniform_int_distribution<int64_t>(0, 2 * half)(random));
  changed_.wait_for(lock, stop, jittered, [] { return false; });
}

void Delivery::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!spool_.oldest(options_.sink)) {
      pause_ = {};
    } else if (send_oldest()) {
      pause_ = {};
      continue;
    } else {
      pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
    }
    rest(stop);
  }
}

}  // namespace pkprof
