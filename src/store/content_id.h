// SPDX-License-Identifier: Apache-2.0
// The id of a row is a 64-bit hash of its content, so that hosts which know nothing of each other
// give the same id to the same thing.
//
// Different contents could get one id. With 10 million rows that happens by chance once in
// 370,000 stores. It cannot be brought about: the seed is random and is the store's own. And it
// cannot go unnoticed: whoever writes a row compares it with the one that has its id, and
// fails where they differ.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/hash.h"
#include "store/rows.h"

namespace pkprof::store {

class ContentHash {
 public:
  explicit ContentHash(uint64_t seed) : seed_(seed), hash_(seed) {}

  void add(uint64_t word) { hash_ = hash_mix(hash_ ^ word, seed_); }
  // The size by itself: "a" and "a" with a NUL behind it are two texts.
  void add(std::string_view text) {
    add(text.size());
    add(hash_bytes(seed_, text));
  }
  void add(const std::vector<Id>& ids) {
    add(ids.size());
    for (const Id id : ids) add(id);
  }
  [[nodiscard]] Id id() const { return std::max<Id>(hash_, no_id + 1); }

 private:
  const uint64_t seed_;
  uint64_t hash_;
};

// Of all columns but the first, which is the id itself.
template <typename Row>
[[nodiscard]] Id content_id(uint64_t seed, const Row& row) {
  ContentHash hash(seed);
  hash.add(std::string_view(Table<Row>::name));
  bool is_first = true;
  each_column<Row>([&](const auto& column) {
    if (!is_first) hash.add(row.*column.member);
    is_first = false;
  });
  return hash.id();
}

}  // namespace pkprof::store
