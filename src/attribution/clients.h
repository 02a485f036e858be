// SPDX-License-Identifier: Apache-2.0
// For whom servers worked: the kernel side's clients in a profile's terms.
#pragma once

#include <cstdint>
#include <span>

#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "process/processes.h"

namespace pkprof {

class Clients {
 public:
  // `table` is the kernel side's, by place, and may still be filling.
  Clients(std::span<const pk_client> table, const Processes& processes)
      : table_(table), processes_(processes) {}

  // `client`: pk_key.client. None for what is in no table.
  ClientId tell(Profile& profile, uint32_t client) const;

 private:
  [[nodiscard]] Label label_of(const pk_client& client) const;

  std::span<const pk_client> table_;
  const Processes& processes_;
};

}  // namespace pkprof
