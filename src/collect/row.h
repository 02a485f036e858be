// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "pkprof/user_abi.h"

namespace pkprof {

// What samples are counted under, on the user side: the key, and which program image its user
// stack belongs to (in place of key.exec_id).
struct Row {
  pk_key key;
  uint64_t image = 0;

  bool operator==(const Row& o) const {
    return image == o.image && std::memcmp(&key, &o.key, sizeof(key)) == 0;
  }
};

struct RowHash {
  size_t operator()(const Row& r) const {
    uint64_t words[sizeof(pk_key) / 8];
    std::memcpy(words, &r.key, sizeof(words));
    uint64_t h = r.image;
    for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15ULL, h ^= h >> 32;
    return h;
  }
};

}  // namespace pkprof
