// SPDX-License-Identifier: Apache-2.0
// A hash index over a vector that someone else owns: it holds positions, not values. The owner
// keeps its values in order of appearance and asks here whether a value is there already.
// Open addressing with linear probing; eight bytes a slot; copied with its owner as it is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pkprof {

class IndexTable {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // The position for which `equal(position)` holds among those inserted under `hash`, or none.
  template <typename Equal>
  [[nodiscard]] uint32_t find(uint64_t hash, Equal equal) const {
    if (slots_.empty()) return none;
    const auto tag = static_cast<uint32_t>(hash);
    for (size_t i = tag & mask();; i = (i + 1) & mask()) {
      if (slots_[i].position == none) return none;
      if (slots_[i].tag == tag && equal(slots_[i].position)) return slots_[i].position;
    }
  }

  // Makes room for so many entries in all.
  void reserve(size_t entries) {
    if (slots_.size() < 2 * entries) resize(std::bit_ceil(2 * entries));
  }

  // `position` must not be there yet.
  void insert(uint64_t hash, uint32_t position) {
    if (slots_.size() < 2 * (used_ + 1)) grow();
    place({static_cast<uint32_t>(hash), position});
    ++used_;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t position = none;
  };

  [[nodiscard]] size_t mask() const { return slots_.size() - 1; }

  void place(Slot slot) {
    size_t i = slot.tag & mask();
    while (slots_[i].position != none) i = (i + 1) & mask();
    slots_[i] = slot;
  }

  void grow() { resize(slots_.empty() ? 16 : 2 * slots_.size()); }

  void resize(size_t size) {
    std::vector<Slot> old(size);
    std::swap(old, slots_);
    for (const Slot& slot : old) {
      if (slot.position != none) place(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t used_ = 0;
};

}  // namespace pkprof
