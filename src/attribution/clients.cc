// SPDX-License-Identifier: Apache-2.0
#include "attribution/clients.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace pkprof {
namespace {

constexpr bool is_same(pk_client_rule kernels, ClientRule ours) {
  return static_cast<int>(kernels) == static_cast<int>(ours);
}
static_assert(is_same(PK_CLIENT_TAKEN, ClientRule::taken) &&
              is_same(PK_CLIENT_REPLIED, ClientRule::replied) &&
              is_same(PK_CLIENT_WOKEN, ClientRule::woken) &&
              is_same(PK_CLIENT_ASKED, ClientRule::asked) &&
              is_same(PK_CLIENT_SHARED, ClientRule::shared));

std::string address_text(const pk_client& client) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(client.family, client.address, text, sizeof text);
  if (!client.port) return text;
  const std::string port = ":" + std::to_string(ntohs(client.port));
  return client.family == AF_INET6 ? "[" + std::string(text) + "]" + port : text + port;
}

}  // namespace

Label Clients::label_of(const pk_client& client) const {
  if (client.process) return processes_.label_of(client.process);
  const std::string address = address_text(client);
  return {.kind = LabelKind::remote, .without_pid = true, .comm = address, .reason = address};
}

pk_key Clients::told_apart(pk_key key) const {
  if (key.served_kind != PK_SERVED_LABEL || !(key.served & PK_AT_WORK)) return key;
  const uint64_t place = key.served & PK_CLIENT_PLACE;
  if (place >= table_.size()) return key;
  key.served = table_[place].process;
  key.client = table_[place].behind | PK_CLIENT_ASKED << PK_CLIENT_RULE_SHIFT;
  return key;
}

void Clients::tell_requests(Profile& profile, const std::function<bool(uint64_t)>& selected) {
  const double watched = watched_share(profile.meta);
  for (uint32_t place = 0; place < table_.size(); ++place) {
    const pk_client& way = table_[place];
    const uint32_t requests = way.requests;
    if (!requests) continue;
    uint32_t& told = told_[place];
    const uint32_t more = requests - std::exchange(told, requests);
    const uint64_t server = processes_.standing_for(way.process);
    if (!more || !selected(server) || watched <= 0) continue;
    const ClientId client = tell(profile, way.behind | PK_CLIENT_TAKEN << PK_CLIENT_RULE_SHIFT);
    profile.requests[{profile.label(processes_.label_of(server)), client}] +=
        static_cast<uint64_t>(std::llround(more / watched));
  }
}

uint64_t Clients::process_of(uint32_t client) const {
  const uint32_t place = client & PK_CLIENT_PLACE;
  if (place >= table_.size() || table_[place].first >= table_.size()) return 0;
  return table_[table_[place].first].process;
}

const pk_client* Clients::call_of(uint32_t client) const {
  const uint32_t place = client & PK_CLIENT_PLACE;
  return place < table_.size() && table_[place].call ? &table_[place] : nullptr;
}

ClientId Clients::tell(Profile& profile, uint32_t client) const {
  const uint32_t place = client & PK_CLIENT_PLACE;
  const uint32_t rule = client >> PK_CLIENT_RULE_SHIFT;
  if (place == 0 || place >= table_.size() || rule == 0 || rule >= client_rule_count) return 0;
  Client told{.rule = static_cast<ClientRule>(rule)};
  const pk_client* at = &table_[place];
  for (int i = 0; at->behind && at->behind < table_.size() && i <= PK_CLIENT_DEPTH; ++i) {
    told.via.push_back(profile.label(label_of(*at)));
    at = &table_[at->behind];
  }
  std::ranges::reverse(told.via);
  told.label = profile.label(label_of(*at));
  return profile.client(told);
}

}  // namespace pkprof
