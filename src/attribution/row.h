// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "pkprof/user_abi.h"

namespace pkprof {

// What samples are counted under, on the user side: the key, with a user stack's number by Stacks.
struct Row {
  pk_key key;
  uint32_t slot = 0;  // 1 + the slot of the timeline, of what is to be in it

  bool operator==(const Row& o) const {
    return slot == o.slot && std::memcmp(&key, &o.key, sizeof(key)) == 0;
  }
};

// Whether it is CPU time, or calls: what the ledger sums and the timeline shows.
inline bool is_of_cpu(const pk_key& key) {
  return key.kind != PK_WAIT && key.kind != PK_USAGE;
}

// Whether key.device is a disk's or a network interface's.
inline bool is_of_device(const pk_key& key) {
  return key.kind == PK_USAGE && key.usage <= PK_NET_DROPPED;
}

// Whether key.ran_on is the number of who is at a packet's other end.
inline bool is_of_network(const pk_key& key) {
  return is_of_device(key) && key.usage >= PK_NET_SENT;
}

// Whether key.kstack names a stack; of what is measured by entry and exit, and of calls, it is a
// function.
inline bool has_kernel_stack(const pk_key& key) {
  return key.kstack && key.kind != PK_INTERRUPT && key.kind != PK_MEASURED &&
         key.kind != PK_CALLS && !is_of_device(key);
}

// Whether key.ustack names one; of a piece of work it is its function, of a call where it came
// from.
inline bool has_user_stack(const pk_key& key) {
  return key.ustack && key.kind != PK_WORK && key.kind != PK_CALLS;
}

inline bool has_stack(const pk_key& key) {
  return has_kernel_stack(key) || has_user_stack(key);
}

// Of what is charged to an object, once it is known whom that is for (0: that will not be);
// `voted`: among others.
inline pk_key charged_to(pk_key key, uint64_t label, bool voted) {
  key.served_kind = PK_SERVED_LABEL;
  key.served = label ? label : uint64_t{PK_UNCLAIMED} + key.reason;
  key.reason = 0;
  if (voted) key.basis = PK_BASIS_VOTED;
  return key;
}

// Of a wait that was, or is, blocked key.waker says who ended it; of all else key.ran_on is a
// label.
inline bool is_blocked(const pk_key& key) {
  return key.kind == PK_WAIT && key.wait_part != PK_WAIT_READY;
}

// Its stack begins with the lock.
inline bool is_of_kernel_lock(const pk_key& key) {
  return key.kind == PK_USAGE && key.usage == PK_LOCK_WAITED;
}

// Whether key.ran_on is a label at all.
inline bool has_ran_on(const pk_key& key) {
  return !is_blocked(key) && !is_of_network(key);
}

struct RowHash {
  size_t operator()(const Row& r) const {
    uint64_t words[sizeof(pk_key) / 8];
    std::memcpy(words, &r.key, sizeof(words));
    uint64_t h = r.slot;
    for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15ULL, h ^= h >> 32;
    return h;
  }
};

}  // namespace pkprof
