// SPDX-License-Identifier: Apache-2.0
// Ranges that overlap, made into ranges that do not. Symbols nest (a label inside a function) and
// JIT compilers reuse memory; a lookup wants one binary search. Where several ranges cover an
// address the highest priority wins; n ranges give at most 2n pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

namespace pkprof {

struct PriorityRange {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t priority = 0;
  uint32_t id = 0;
};

struct FlatRange {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t id = 0;
};

// `ranges` is sorted in place by its start.
inline std::vector<FlatRange> flatten(std::vector<PriorityRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  std::vector<FlatRange> pieces;
  pieces.reserve(ranges.size());
  const auto less = [&](uint32_t a, uint32_t b) { return ranges[a].priority < ranges[b].priority; };
  std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(less)> active(less);
  uint64_t position = 0;

  const auto advance = [&](uint64_t to) {
    while (!active.empty() && position < to) {
      const PriorityRange& top = ranges[active.top()];
      if (top.end <= position) {
        active.pop();
        continue;
      }
      const uint64_t end = std::min(top.end, to);
      if (!pieces.empty() && pieces.back().end == position && pieces.back().id == top.id) {
        pieces.back().end = end;
      } else {
        pieces.push_back({position, end, top.id});
      }
      position = end;
    }
    position = to;
  };

  for (uint32_t i = 0; i < ranges.size(); ++i) {
    advance(ranges[i].start);
    if (ranges[i].end > ranges[i].start) active.push(i);
  }
  advance(UINT64_MAX);
  return pieces;
}

// The piece that covers the address; nullptr when none does.
inline const FlatRange* find_range(const std::vector<FlatRange>& pieces, uint64_t address) {
  auto it = std::upper_bound(pieces.begin(), pieces.end(), address,
                             [](uint64_t a, const FlatRange& r) { return a < r.start; });
  if (it == pieces.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

}  // namespace pkprof
