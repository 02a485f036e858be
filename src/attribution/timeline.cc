// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pkprof {

void Timeline::begin(uint32_t slot, uint32_t slots, uint64_t slot_ns) {
  now_ = 1 + slot;
  slot_ns_ = slot_ns;
  if (slots > 1) slots_[now_] = slots;
}

void Timeline::add(const Row& row, uint64_t ns) {
  // A CPU that sleeps long says so when it wakes up: that may be slots later.
  if (!ns || row.key.kind == PK_CALLS || row.key.kind == PK_IDLING) return;
  Row cell = row;
  cell.key.basis = 0;
  const auto several = slots_.find(row.slot);
  const uint32_t slots = several == slots_.end() ? 1 : several->second;
  for (uint32_t i = 0; i < slots; ++i) {
    cell.slot = 1 + ((row.slot - 1 + i) >> shift_);
    cells_[cell] += ns / slots + (i < ns % slots ? 1 : 0);
  }
}

void Timeline::scale(Scale scale) {
  for (auto& [row, ns] : cells_) ns = scale(ns);
}

void Timeline::make_room() {
  constexpr uint32_t most_shift = 31;
  const size_t enough = max_cells_ / 4 * 3;
  for (bool helps = true; helps && cells_.size() > enough && shift_ < most_shift;) {
    const size_t before = cells_.size();
    make_slots_longer();
    helps = cells_.size() < before / 10 * 9;
  }
  full_at_ = std::max(max_cells_, cells_.size() / 4 * 5);
}

void Timeline::make_slots_longer() {
  ++shift_;
  change_rows([](const Row& row) {
    Row to = row;
    to.slot = 1 + ((row.slot - 1) >> 1);
    return to;
  });
}

void Timeline::change_rows(const std::function<Row(const Row&)>& changed) {
  std::unordered_map<Row, uint64_t, RowHash> cells;
  for (const auto& [row, ns] : cells_) cells[changed(row)] += ns;
  cells_ = std::move(cells);
}

void Timeline::each_row(const std::function<void(const Row&)>& visit) const {
  for (const auto& [row, ns] : cells_) visit(row);
}

void Timeline::finish(Profile& profile, const std::function<SampleKey(const Row&)>& tell) {
  if (cells_.empty()) return;
  std::map<std::tuple<uint32_t, LabelId, LabelId, StringId>, uint64_t> sums;
  for (const auto& [row, ns] : cells_) {
    const SampleKey key = tell(row);
    sums[{row.slot - 1, key.ran_on, key.served, key.source}] += ns;
  }
  cells_.clear();
  for (const auto& [cell, ns] : sums) {
    const auto& [slot, ran_on, served, source] = cell;
    profile.timeline.push_back({slot, ran_on, served, source, ns});
  }
  profile.meta.slot_ns = slot_ns_ << shift_;
}

}  // namespace pkprof
