// SPDX-License-Identifier: Apache-2.0
#include "attribution/client_calls.h"

#include <vector>

#include "attribution/sources.h"

namespace pkprof {

void ClientCalls::meet(uint32_t client) {
  const pk_client* call = clients_.call_of(client);
  if (!call) return;
  const auto [it, fresh] = stack_of_.try_emplace(client & PK_CLIENT_PLACE);
  if (fresh)
    it->second = stacks_.user_number(
        call->call, processes_.image_of(clients_.process_of(client), call->exec_id));
}

void ClientCalls::each_stack(const std::function<void(uint64_t)>& visit) const {
  for (const auto& [place, stack] : stack_of_) visit(stack);
}

ClientId ClientCalls::tell(Profile& profile, ClientId told, uint32_t client,
                           Stacks::Mover& move_frame) const {
  const pk_client* call = told ? clients_.call_of(client) : nullptr;
  if (!call) return told;
  std::vector<FrameId> stack;
  if (call->syscall != PK_NO_SYSCALL) {
    const std::string name = "syscall:" + syscall_name(call->syscall, call->compat);
    stack.push_back(profile.frame({.kind = FrameKind::pseudo, .function = profile.string(name)}));
  }
  const auto it = stack_of_.find(client & PK_CLIENT_PLACE);
  if (it != stack_of_.end())
    for (const FrameId frame : stacks_.user(it->second)) stack.push_back(move_frame(frame));
  Client with_call = profile.clients()[told];
  with_call.call = profile.stack(stack);
  return profile.client(with_call);
}

}  // namespace pkprof
