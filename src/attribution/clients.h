// SPDX-License-Identifier: Apache-2.0
// For whom servers worked: the kernel side's clients in a profile's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "process/processes.h"

namespace pkprof {

class Clients {
 public:
  explicit Clients(const Processes& processes) : processes_(processes) {}
  // `table` is the kernel side's, by place, and may still be filling. It is to outlive this.
  void know(std::span<const pk_client> table) { table_ = table; }

  // Of what is charged to a server at work for a client (PK_AT_WORK): both, each in its place.
  [[nodiscard]] pk_key told_apart(pk_key key) const;

  // How many requests there were since the last time, of servers that are `selected`, by label.
  void tell_requests(Profile& profile, const std::function<bool(uint64_t)>& selected);

  // The call by which a client took its answer; nullptr where that is not known. `client`: as
  // below.
  [[nodiscard]] const pk_client* call_of(uint32_t client) const;
  // The label of the client itself, at the beginning of its way.
  [[nodiscard]] uint64_t process_of(uint32_t client) const;

  // `client`: pk_key.client. None for what is in no table.
  ClientId tell(Profile& profile, uint32_t client) const;

 private:
  [[nodiscard]] Label label_of(const pk_client& client) const;

  std::span<const pk_client> table_;
  std::unordered_map<uint32_t, uint32_t> told_;  // requests, by place
  const Processes& processes_;
};

}  // namespace pkprof
