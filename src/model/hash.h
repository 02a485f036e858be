// SPDX-License-Identifier: Apache-2.0
// Hashing for the Profile's tables. The seed differs from process to process, so that a profile
// file made to collide does not: ids are given in order of appearance, so nothing that is
// written or printed depends on a hash.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace pkprof {

// Random, fixed for the life of the process.
[[nodiscard]] uint64_t hash_seed();

[[nodiscard]] inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15) *
                       static_cast<unsigned __int128>(b ^ 0xe7037ed1a0b428db);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

[[nodiscard]] inline uint64_t hash_words(uint64_t seed, std::initializer_list<uint64_t> words) {
  uint64_t hash = seed;
  for (const uint64_t word : words) hash = hash_mix(hash ^ word, seed);
  return hash;
}

[[nodiscard]] inline uint64_t hash_bytes(uint64_t seed, std::string_view bytes) {
  uint64_t hash = seed ^ bytes.size();
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = hash_mix(hash ^ word, seed);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return hash_mix(hash ^ rest, seed);
}

}  // namespace pkprof
