// SPDX-License-Identifier: Apache-2.0
// Bounds of the memory for records: for a process, for a user, and in all. It is kernel memory that
// programs without privileges ask for.
//
// A program may keep its memory when it is no longer served. Memory counts until it is freed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace pkprof {

class DeboxRoom {
 public:
  struct Bound {
    size_t threads;
    uint64_t bytes;
  };
  static constexpr Bound of_process{.threads = 1024, .bytes = uint64_t{1} << 27};
  static constexpr Bound of_user{.threads = 2048, .bytes = uint64_t{1} << 28};
  static constexpr Bound in_all{.threads = 8191, .bytes = uint64_t{1} << 30};  // root's own, too

  struct Holder {
    uint32_t pid = 0;
    uid_t user = 0;
    uint64_t bytes = 0;  // for a thread of it
    uint32_t memory = 0;
  };

  // `is_there` says whether the memory has not been freed.
  explicit DeboxRoom(std::function<bool(uint32_t memory)> is_there)
      : is_there_(std::move(is_there)) {}

  // 0 if there is room, else the errno for the program: EDQUOT at the bound of its process or its
  // user, ENOMEM at that of all.
  [[nodiscard]] int refuses(const Holder& wanted);
  void add(const Holder& holder) { holders_.push_back(holder); }

 private:
  using Belongs = std::function<bool(const Holder&)>;
  [[nodiscard]] bool has_room(const Belongs& belongs, const Bound& bound, uint64_t bytes);
  [[nodiscard]] bool has_room_now(const Belongs& belongs, const Bound& bound, uint64_t bytes) const;

  std::function<bool(uint32_t)> is_there_;
  std::vector<Holder> holders_;
};

}  // namespace pkprof
