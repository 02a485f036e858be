// SPDX-License-Identifier: Apache-2.0
#include "attribution/usage/peers.h"

#include <arpa/inet.h>

#include <utility>

namespace pkprof {

void Peers::ask(Fetch fetch, Holder holder) {
  fetch_ = std::move(fetch);
  holder_ = std::move(holder);
}

uint64_t Peers::meet(uint64_t number) {
  if (!number || !fetch_) return number;
  if (const auto it = known_.find(number); it != known_.end()) {
    Known& known = it->second;
    if (!known.peer.object || known.process) return number;
    known.process = holder_(known.peer.object);
    return known.process ? of_process_.try_emplace(known.process, number).first->second : number;
  }
  const auto peer = fetch_(number);
  if (!peer) return number;
  return keep(number, {*peer, peer->object ? holder_(peer->object) : 0});
}

// One that is known already under another number is not kept again.
uint64_t Peers::keep(uint64_t number, const Known& known) {
  if (known.process) {
    const auto [it, fresh] = of_process_.try_emplace(known.process, number);
    if (fresh) known_.emplace(number, known);
    return it->second;
  }
  Known kept = known;
  if (kept.peer.object && known_.size() >= most_connections) kept.peer.object = 0;
  if (!kept.peer.object) {
    const auto& a = kept.peer.address;
    const Address address = {kept.peer.family, a[0], a[1], a[2], a[3]};
    const auto [it, fresh] = of_address_.try_emplace(address, number);
    if (!fresh) return it->second;
  }
  if (known_.size() < most) known_.emplace(number, kept);
  return number;
}

uint64_t Peers::process_of(uint64_t number) const {
  const auto it = known_.find(number);
  if (it == known_.end()) return 0;
  const Known& known = it->second;
  return known.process || !known.peer.object ? known.process : holder_(known.peer.object);
}

Label Peers::label_of(uint64_t number) const {
  const auto it = known_.find(number);
  if (it == known_.end())
    return {.kind = LabelKind::unclaimed, .reason = number ? "forgotten" : "untracked"};
  const pk_peer& peer = it->second.peer;
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(static_cast<int>(peer.family), peer.address, text, sizeof text);
  return {.kind = LabelKind::remote, .without_pid = true, .comm = text, .reason = text};
}

}  // namespace pkprof
