// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace pkprof {

enum class Keep : bool { no, yes };

// Reads a hash table whole and, unless it is to be kept, empties it; `take` gets keys and values.
template <typename K, typename V, typename Take>
Result<> read_table(int fd, uint32_t capacity, Keep keep, Take take) {
  const auto read = keep == Keep::yes ? bpf_map_lookup_batch : bpf_map_lookup_and_delete_batch;
  constexpr uint32_t batch = 1024;
  std::vector<K> keys(batch);
  std::vector<V> values(batch);
  uint64_t position[8] = {};  // opaque to us
  void* in = nullptr;
  for (uint32_t rounds = 0; rounds <= capacity; ++rounds) {
    uint32_t count = batch;
    const int err = read(fd, in, position, keys.data(), values.data(), &count, nullptr);
    const int error = err ? errno : 0;
    if (error && error != ENOENT) {
      if (error == ENOSPC && keys.size() < capacity) {  // one bucket is larger than the batch
        keys.resize(keys.size() * 2);
        values.resize(values.size() * 2);
        continue;
      }
      return fail_errno("reading a table of the kernel side", error);
    }
    for (uint32_t i = 0; i < count; ++i) take(keys[i], values[i]);
    if (error == ENOENT) return {};
    in = position;
  }
  return {};
}

template <typename K, typename V>
Result<> read_table(const bpf_map* map, Keep keep, std::vector<std::pair<K, V>>& out) {
  return read_table<K, V>(bpf_map__fd(map), bpf_map__max_entries(map), keep,
                          [&](const K& k, const V& v) { out.emplace_back(k, v); });
}

}  // namespace pkprof
