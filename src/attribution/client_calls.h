// SPDX-License-Identifier: Apache-2.0
// What clients were at when they took their servers' answers.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "attribution/clients.h"
#include "attribution/stacks.h"
#include "model/profile.h"
#include "process/processes.h"

namespace pkprof {

class ClientCalls {
 public:
  ClientCalls(const Clients& clients, Processes& processes, Stacks& stacks)
      : clients_(clients), processes_(processes), stacks_(stacks) {}

  // A row has come that names this client (pk_key.client): its call's stack is at hand now.
  void meet(uint32_t client);
  // The stacks that are to be kept.
  void each_stack(const std::function<void(uint64_t)>& visit) const;
  // `told`, which is how the profile has that client, with the call.
  ClientId tell(Profile& profile, ClientId told, uint32_t client, Stacks::Mover& move_frame) const;

 private:
  const Clients& clients_;
  Processes& processes_;
  Stacks& stacks_;
  std::unordered_map<uint32_t, uint64_t> stack_of_;  // of user code, by place
};

}  // namespace pkprof
