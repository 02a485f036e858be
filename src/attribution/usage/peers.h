// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of packets: addresses, by the numbers that rows have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "model/profile.h"
#include "pkprof/user_abi.h"

namespace pkprof {

class Peers {
 public:
  // The kernel side forgets them; nothing where it has.
  using Fetch = std::function<std::optional<pk_peer>(uint64_t number)>;

  void ask(Fetch fetch) { fetch_ = std::move(fetch); }
  // A row has this number: its address is asked for while it is there.
  void meet(uint64_t number);
  // Its address; 0 and what was forgotten is nobody.
  [[nodiscard]] Label label_of(uint64_t number) const;

 private:
  static constexpr size_t most = 65536;

  Fetch fetch_;
  std::unordered_map<uint64_t, pk_peer> known_;
};

}  // namespace pkprof
