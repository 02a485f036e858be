// SPDX-License-Identifier: Apache-2.0
#include "collect/spread.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pkprof {
namespace {

// Outer frames compared; the outermost one is the loop over the vectors, the same for all.
constexpr size_t prefixes[] = {12, 9, 7, 5, 4, 3, 2};

// Of what was seen while hooks were on throughout, of each nanosecond: it says little of a pause.
constexpr double least_of_pauses = 0.01;

// What is left of what was seen: at intervals each second, of what was seen long ago each time that
// pauses are settled.
constexpr double left_after_a_second = 0.75;
constexpr double left_of_earlier = 0.75;

constexpr uint64_t most_parts = 1000;  // that the samples of one stack are charged in

// The i-th of n parts that add up to the whole.
uint64_t part(uint64_t whole, uint64_t i, uint64_t n) {
  return whole / n + (i < whole % n ? 1 : 0);
}

// The order counts: what is mixed in first cannot change places with what comes after it.
uint64_t mix(uint64_t h, uint64_t v) {
  h = (h + 0x9e3779b97f4a7c15ULL) * 0xc4ceb9fe1a85ec53ULL;
  h = (h ^ h >> 32 ^ v) * 0xff51afd7ed558ccdULL;
  return h ^ h >> 32;
}

enum Likeness : uint64_t { same_stack, same_vector, same_task, same_frames };  // so many of them

// What a row may be alike in, most alike first; under its process, then under anyone.
std::vector<uint64_t> keys_of(const pk_key& key, std::span<const FrameId> stack) {
  std::vector<uint64_t> alike;
  if (key.kstack) alike.push_back(mix(same_stack, key.kstack));
  for (const size_t n : prefixes) {
    if (stack.size() <= n) continue;  // the leaf is an address within a function, not a call
    uint64_t h = same_frames + n;
    for (const FrameId frame : stack.last(n)) h = mix(h, frame);
    alike.push_back(h);
  }
  if (key.vec != PK_VEC_NONE) alike.push_back(mix(same_vector, key.vec));
  // Kernel threads at other work have the same outer frames.
  const uint64_t task = key.kind == PK_WORK ? key.ustack : key.kind == PK_KTHREAD ? key.ran_on : 0;
  if (task) {
    alike.push_back(same_task);
    for (uint64_t& h : alike) h = mix(h, task);
  }
  std::vector<uint64_t> keys;
  keys.reserve(2 * alike.size());
  for (const uint64_t h : alike) keys.push_back(mix(h, key.ran_on | 1));
  keys.insert(keys.end(), alike.begin(), alike.end());
  return keys;
}

void add(pk_count& sum, const pk_count& more) {
  sum.ns += more.ns;
  sum.samples += more.samples;
}

// Of two tables of what was seen.
void add_all(auto& sum, const auto& more) {
  for (const auto& [row, seen] : more) {
    sum[row].ns += seen.ns;
    sum[row].of_pauses += seen.of_pauses;
  }
}

// Steps of the golden ratio fall evenly, however many there will be.
double step(double turn) {
  turn += 0.6180339887498949;
  return turn >= 1 ? turn - 1 : turn;
}

}  // namespace

void Spread::seen(const Row& row, const pk_count& count) {
  Row kept = row;
  kept.slot = 0;  // when it was is not asked for, and would keep apart what is alike
  add(seen_[kept], count);
}

void Spread::unwatched(const Row& row, const pk_count& count) {
  add(waiting_[row], count);
}

void Spread::forget_seen() {
  seen_.clear();
  seen_before_.clear();
  seen_earlier_.clear();
}

void Spread::put_behind(const Parties::Of& parties_of) {
  Weighed behind;
  for (const Weighed* rows : {&seen_before_, &seen_earlier_}) {
    for (const auto& [row, seen] : *rows) {
      for (const auto& [key, part] : by_party(row.key, parties_of)) {
        Seen& sum = behind[{key, row.slot}];
        sum.ns += part * seen.ns;
        sum.of_pauses += part * seen.of_pauses;
      }
    }
  }
  seen_before_.clear();
  seen_earlier_ = std::move(behind);
}

void Spread::each_row(const std::function<void(const Row&)>& visit) const {
  for (const Counts* rows : {&seen_, &waiting_})
    for (const auto& [row, count] : *rows) visit(row);
  for (const Weighed* rows : {&seen_before_, &seen_earlier_})
    for (const auto& [row, seen] : *rows) visit(row);
}

void Spread::add_alike(Alike& alike, Choices& choices, std::span<const uint64_t> keys) const {
  for (const uint64_t key : keys) {
    if (is_decided(alike)) return;
    const auto it = choices.find(key);
    if (it == choices.end()) continue;
    const double decided = alike.empty() ? 0 : alike.back().second;
    const double ns = it->second.ns;
    alike.emplace_back(&it->second,
                       ns >= enough_ns_ ? 1 : decided + (1 - decided) * ns / enough_ns_);
  }
}

const Row& Spread::next(const Alike& alike) {
  level_ = step(level_);
  const auto it = std::ranges::upper_bound(alike, level_ * alike.back().second, {},
                                           [](const auto& choice) { return choice.second; });
  Choice& choice = it == alike.end() ? *alike.back().first : *it->first;
  if (!choice.turn) choice.turn = std::exchange(turn_, step(turn_));
  return choice.next();
}

const Row& Spread::Choice::next() {
  turn = step(turn.value_or(0));
  const auto it = std::ranges::upper_bound(parties, *turn * parties.back().second, {},
                                           [](const auto& party) { return party.second; });
  return it == parties.end() ? *parties.back().first : *it->first;
}

// What is left of it stands for a small part of a sample at some time, and is forgotten.
void Spread::fade(Weighed& seen, double left) const {
  for (auto& [row, s] : seen) {
    s.ns *= left;
    s.of_pauses *= left;
  }
  std::erase_if(seen, [=, this](const auto& entry) { return entry.second.ns < enough_ns_ / 64; });
}

Spread::Weighed Spread::weigh(const Weight& weight) const {
  Weighed weighed;
  for (const auto& [row, count] : seen_) {
    Row kept = row;
    kept.key.watched = 0;
    Seen& seen = weighed[kept];
    const auto ns = static_cast<double>(count.ns);
    seen.ns += ns;
    seen.of_pauses += ns * (weight ? std::max(weight(row.key.watched), least_of_pauses) : 1);
  }
  return weighed;
}

Spread::Choices Spread::choices_of(const Weighed& weighed, const StackOf& stack_of) {
  Choices choices;
  for (const auto& [row, seen] : weighed) {
    for (const uint64_t key : keys_of(row.key, stack_of(row.key.kstack))) {
      Choice& choice = choices[key];
      const double before = choice.parties.empty() ? 0 : choice.parties.back().second;
      choice.parties.emplace_back(&row, before + seen.of_pauses);
      choice.ns += seen.ns;
    }
  }
  return choices;
}

void Spread::settle(const StackOf& stack_of, const Charge& charge, When when, double seconds,
                    const Weight& weight) {
  Weighed seen = weigh(weight);
  seen_.clear();
  if (when != When::meanwhile) add_all(seen, seen_before_);
  Choices choices;
  Choices earlier;
  if (!waiting_.empty()) {
    choices = choices_of(seen, stack_of);
    if (when != When::meanwhile) earlier = choices_of(seen_earlier_, stack_of);
  }
  // Asked for seldom, and there may be much of it.
  Weighed seen_ever;
  std::optional<Choices> ever;
  const auto choices_ever = [&]() -> Choices& {
    if (!ever) {
      seen_ever = seen_earlier_;
      if (when == When::meanwhile) add_all(seen_ever, seen_before_);
      add_all(seen_ever, seen);
      ever = choices_of(seen_ever, stack_of);
    }
    return *ever;
  };
  const Counts waiting = std::exchange(waiting_, {});
  for (const auto& [row, count] : waiting) {
    const auto keys = keys_of(row.key, stack_of(row.key.kstack));
    // Of one process a short turn may show little; what it showed before says more of it than what
    // others show now.
    const auto of_process = std::span(keys).first(keys.size() / 2);
    const auto of_anyone = std::span(keys).subspan(keys.size() / 2);
    Alike alike;
    add_alike(alike, choices, of_process);
    if (!is_decided(alike)) add_alike(alike, choices_ever(), of_process);
    // What is alike on a process is alike on anyone.
    const size_t before = alike.size();
    add_alike(alike, choices, of_anyone);
    const bool none_now = alike.size() == before && !is_decided(alike);
    if (none_now) add_alike(alike, earlier, of_anyone);
    if (none_now && when == When::meanwhile) {
      // Of what waits longer it is forgotten in which slot it was, or there were more and more.
      Row kept = row;
      kept.slot = 0;
      add(waiting_[kept], count);
      continue;
    }
    const uint64_t parts = alike.empty() ? 1 : std::clamp<uint64_t>(count.samples, 1, most_parts);
    for (uint64_t i = 0; i < parts; ++i) {
      Row to = alike.empty() ? row : next(alike);
      to.key.ran_on = row.key.ran_on;
      to.key.kstack = row.key.kstack;
      to.slot = row.slot;
      if (alike.empty()) {
        to.key.served = uint64_t{PK_UNCLAIMED} + PK_UNWATCHED;
        to.key.served_kind = PK_SERVED_LABEL;
      }
      charge(to, {part(count.ns, i, parts), part(count.samples, i, parts)});
    }
  }
  if (when != When::interval) fade(seen_earlier_, left_of_earlier);
  if (when == When::meanwhile) add_all(seen_earlier_, seen_before_);
  seen_before_ = std::move(seen);
  if (when == When::interval) {
    const double left = std::pow(left_after_a_second, seconds);
    fade(seen_before_, left);
    fade(seen_earlier_, left);
  }
}

}  // namespace pkprof
