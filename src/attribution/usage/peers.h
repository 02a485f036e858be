// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of packets, by the numbers that rows have: processes of this machine,
// where it is known which socket is there; addresses else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "model/profile.h"
#include "pkprof/user_abi.h"

namespace pkprof {

class Peers {
 public:
  // The kernel side forgets them; nothing where it has.
  using Fetch = std::function<std::optional<pk_peer>(uint64_t number)>;
  // The label of the process that holds a socket; 0: not known.
  using Holder = std::function<uint64_t(uint64_t object)>;

  void ask(Fetch fetch, Holder holder);
  // A row has this number: it is asked for while it is there. Returns the number that the row is to
  // have: the same for all connections with a process.
  [[nodiscard]] uint64_t meet(uint64_t number);
  // The label of the process at the other end; 0: it is none of this machine, or not known.
  [[nodiscard]] uint64_t process_of(uint64_t number) const;
  // Its address; 0 and what was forgotten is nobody.
  [[nodiscard]] Label label_of(uint64_t number) const;

 private:
  static constexpr size_t most = 65536;
  // Beyond it connections are told apart only where the process is known.
  static constexpr size_t most_connections = most / 2;

  struct Known {
    pk_peer peer;
    uint64_t process = 0;
  };
  using Address = std::array<uint32_t, 5>;
  [[nodiscard]] uint64_t keep(uint64_t number, const Known& known);

  Fetch fetch_;
  Holder holder_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<uint64_t, uint64_t> of_process_;  // numbers in known_
  std::map<Address, uint64_t> of_address_;             // likewise, of those without a socket
};

}  // namespace pkprof
