// SPDX-License-Identifier: Apache-2.0
// See space.h.
#include "export/gmon/space.h"

#include <algorithm>
#include <limits>
#include <map>

namespace pkprof {

namespace {

constexpr uint64_t text_start = 0x400000;
constexpr uint64_t counter_bytes = 4;  // of addresses; glibc's too
// Sixteen files can be summed before a counter runs over.
constexpr uint64_t most_in_counter = std::numeric_limits<uint16_t>::max() / 16;
// gprof counts calls and ticks in ints in places.
constexpr uint64_t most_ticks = std::numeric_limits<int32_t>::max();
constexpr uint64_t longest_tick_ns = 1'000'000'000;

uint64_t counters_of(uint64_t ticks) {
  return std::max<uint64_t>(1, (ticks + most_in_counter - 1) / most_in_counter);
}

}  // namespace

GmonSpace::GmonSpace(const std::vector<GmonPart>& parts) : parts_(parts), end_(text_start) {
  uint64_t ns = 0;
  for (const GmonPart& part : parts) ns += part.user_ns() + part.kernel_ns();
  while (ticks(ns) > most_ticks && tick_ns_ < longest_tick_ns) tick_ns_ *= 10;
  placed_.reserve(parts.size());
  for (const GmonPart& part : parts) place(part);
}

void GmonSpace::place(const GmonPart& part) {
  Placed placed;
  placed.functions.resize(part.functions.size());
  // What a root has itself counts as the kernel's.
  place(part, placed, true);
  place(part, placed, false);
  placed_.push_back(std::move(placed));
}

void GmonSpace::place(const GmonPart& part, Placed& placed, bool user) {
  Range& side = user ? placed.user : placed.kernel;
  side.low = end_;
  for (size_t i = 0; i < part.functions.size(); ++i) {
    const GmonFunction& function = part.functions[i];
    if (function.is_user() != user) continue;
    const uint64_t low = end_;
    end_ += counters_of(ticks(function.self_ns)) * counter_bytes;
    placed.functions[i] = {low, end_};
  }
  side.high = end_;
}

std::vector<GmonSpace::Place> GmonSpace::order(const Parts& parts) const {
  std::vector<Place> order;
  for (const uint32_t part : parts) {
    for (uint32_t i = 0; i < parts_[part].functions.size(); ++i) order.push_back({part, i});
  }
  std::ranges::sort(order, {},
                    [&](const Place& at) { return placed_[at.part].functions[at.function].low; });
  return order;
}

SymbolFile GmonSpace::symbols(const Parts& parts) const {
  SymbolFile file;
  for (const auto& [part, function] : order(parts)) {
    const auto& [low, high] = placed_[part].functions[function];
    file.symbols.push_back(
        {.name = parts_[part].functions[function].name, .address = low, .size = high - low});
  }
  // gprof looks for the end of a function at the start of the next; behind the last, with a gap, is
  // one that nothing is in.
  const uint64_t end = end_ + counter_bytes;
  file.symbols.push_back({.name = "etext", .address = end, .size = counter_bytes});
  file.text_start = text_start;
  file.text_size = end + counter_bytes - text_start;
  return file;
}

Gmon GmonSpace::records(const Parts& parts, GmonSide side) const {
  Gmon gmon;
  for (const uint32_t part : parts) {
    if (side != GmonSide::kernel) add_histogram(gmon, part, true);
    if (side != GmonSide::user) add_histogram(gmon, part, false);
  }
  for (const uint32_t part : parts) add_arcs(gmon, part, side);
  return gmon;
}

void GmonSpace::add_histogram(Gmon& to, uint32_t part, bool user) const {
  const Placed& placed = placed_[part];
  const Range& side = user ? placed.user : placed.kernel;
  if (side.low == side.high) return;
  GmonHistogram histogram{.low = side.low, .high = side.high, .rate = ticks_per_second()};
  histogram.counts.resize((side.high - side.low) / counter_bytes);
  for (size_t i = 0; i < placed.functions.size(); ++i) {
    const GmonFunction& function = parts_[part].functions[i];
    if (function.is_user() != user) continue;
    size_t at = (placed.functions[i].low - side.low) / counter_bytes;
    for (uint64_t left = ticks(function.self_ns); left != 0;) {
      const uint64_t here = std::min(left, most_in_counter);
      histogram.counts[at++] = static_cast<uint16_t>(here);
      left -= here;
    }
  }
  to.histograms.push_back(std::move(histogram));
}

void GmonSpace::add_arcs(Gmon& to, uint32_t number, GmonSide side) const {
  const GmonPart& part = parts_[number];
  const auto is_in = [&](const GmonFunction& function) {
    return side == GmonSide::both || function.is_user() == (side == GmonSide::user);
  };
  // Of a process there is one root. Of nobody there are several, by why; and of those there are no
  // files of one side with callers on the other.
  uint32_t root = 0;
  while (root < part.functions.size() && !part.functions[root].root) ++root;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;
  for (const GmonCall& call : part.calls) {
    if (!is_in(part.functions[call.callee])) continue;
    const GmonFunction& caller = part.functions[call.caller];
    const uint32_t from = caller.root || is_in(caller) ? call.caller : root;
    counts[{from, call.callee}] +=
        part.functions[call.callee].counted ? call.calls : std::max<uint64_t>(1, ticks(call.ns));
  }
  const std::vector<Range>& places = placed_[number].functions;
  for (const auto& [arc, count] : counts)
    add_arc(to, places[arc.first].low, places[arc.second].low, count);
}

void GmonSpace::add_arc(Gmon& to, uint64_t from, uint64_t into, uint64_t count) const {
  while (count != 0) {
    const uint64_t here = std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max());
    to.arcs.push_back({.from = from, .to = into, .count = static_cast<uint32_t>(here)});
    count -= here;
  }
}

}  // namespace pkprof
