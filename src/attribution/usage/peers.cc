// SPDX-License-Identifier: Apache-2.0
#include "attribution/usage/peers.h"

#include <arpa/inet.h>

namespace pkprof {

void Peers::meet(uint64_t number) {
  if (!number || !fetch_ || known_.size() >= most || known_.contains(number)) return;
  if (const auto peer = fetch_(number)) known_.emplace(number, *peer);
}

Label Peers::label_of(uint64_t number) const {
  const auto it = known_.find(number);
  if (it == known_.end())
    return {.kind = LabelKind::unclaimed, .reason = number ? "forgotten" : "untracked"};
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(static_cast<int>(it->second.family), it->second.address, text, sizeof text);
  return {.kind = LabelKind::remote, .without_pid = true, .comm = text, .reason = text};
}

}  // namespace pkprof
