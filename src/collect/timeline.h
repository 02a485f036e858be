// SPDX-License-Identifier: Apache-2.0
// When the work was done: time by slots of a second or more, without stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "collect/row.h"
#include "model/profile.h"

namespace pkprof {

class Timeline {
 public:
  // With more cells than `max_cells`, slots are made twice as long.
  explicit Timeline(size_t max_cells) : max_cells_(max_cells) {}

  // From here on it is `slot`, of `slot_ns`.
  void begin(uint32_t slot, uint64_t slot_ns) {
    now_ = 1 + slot;
    slot_ns_ = slot_ns;
  }
  // As in Row: 0 before the first slot began.
  [[nodiscard]] uint32_t now() const { return now_; }

  // `row` is in a slot, and has no stacks.
  void add(const Row& row, uint64_t ns);
  // What rows that become the same have is added up.
  void change_rows(const std::function<Row(const Row&)>& changed);
  void each_row(const std::function<void(const Row&)>& visit) const;

  // Moves everything into the profile, and forgets it.
  void finish(Profile& profile, const std::function<SampleKey(const Row&)>& tell);

 private:
  void make_slots_longer();

  const size_t max_cells_;
  std::unordered_map<Row, uint64_t, RowHash> cells_;  // ns
  uint32_t now_ = 0;
  uint64_t slot_ns_ = 0;
  uint32_t shift_ = 0;  // slots were made twice as long so often
};

}  // namespace pkprof
