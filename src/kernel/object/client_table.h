// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of clients for which servers work, as it fills.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "pkprof/user_abi.h"

namespace pkprof {

class ClientTable {
 public:
  // Of the map with this descriptor. What is in it is never moved.
  static Result<ClientTable> of(int map);
  ClientTable() = default;
  ClientTable(ClientTable&& other) noexcept;
  ClientTable& operator=(ClientTable&& other) noexcept;
  ~ClientTable();

  // By place; none where clients are not asked for.
  [[nodiscard]] std::span<const pk_client> all() const { return all_; }

 private:
  std::span<const pk_client> all_;
};

}  // namespace pkprof
