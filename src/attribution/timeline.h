// SPDX-License-Identifier: Apache-2.0
// When the work was done: time by slots of a second or more, without stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "attribution/row.h"
#include "attribution/scale.h"
#include "model/profile.h"

namespace pkprof {

class Timeline {
 public:
  explicit Timeline(size_t max_cells) : max_cells_(max_cells), full_at_(max_cells) {}

  // From here on it is `slot`, of `slot_ns`; or what comes is spread evenly over so many slots.
  void begin(uint32_t slot, uint32_t slots, uint64_t slot_ns);
  // As in Row: 0 before the first slot began.
  [[nodiscard]] uint32_t now() const { return now_; }

  // `row` is in a slot, and has no stacks.
  void add(const Row& row, uint64_t ns);
  // What rows that become the same have is added up.
  void change_rows(const std::function<Row(const Row&)>& changed);
  // It has more cells than there should be. make_room() makes slots twice as long, until it has
  // well fewer, or that does not help: there are as many in any slot, and is_full() lets it be for
  // a while.
  [[nodiscard]] bool is_full() const { return cells_.size() > full_at_; }
  void make_room();
  void scale(Scale scale);
  void each_row(const std::function<void(const Row&)>& visit) const;

  // Moves everything into the profile, and forgets it.
  void finish(Profile& profile, const std::function<SampleKey(const Row&)>& tell);

 private:
  void make_slots_longer();

  const size_t max_cells_;
  size_t full_at_;
  std::unordered_map<Row, uint64_t, RowHash> cells_;  // ns
  std::unordered_map<uint32_t, uint32_t> slots_;      // that one stands for, if several
  uint32_t now_ = 0;
  uint64_t slot_ns_ = 0;
  uint32_t shift_ = 0;  // slots were made twice as long so often
};

}  // namespace pkprof
