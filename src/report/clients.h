// SPDX-License-Identifier: Apache-2.0
// Servers' time by the clients that they worked for. A recording has it where that was asked for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// What a server did for one client, by one way. All in nanoseconds of CPU time.
struct ClientRow {
  ClientId client = 0;  // any of those with this label and this way; 0: for itself
  uint64_t user_ns = 0;
  uint64_t own_ns = 0;
  uint64_t async_ns = 0;
  std::array<uint64_t, client_rule_count> rules = {};  // by why it is this client's
  uint64_t requests = 0;  // that the server took of it; 0 where they cannot be counted

  [[nodiscard]] uint64_t total_ns() const { return user_ns + own_ns + async_ns; }
};

struct Server {
  LabelId label = 0;
  std::vector<ClientRow> clients;  // largest first; what it did for itself is the last
  uint64_t for_clients_ns = 0;
  uint64_t for_itself_ns = 0;
};

// Whether any sample was for a client.
[[nodiscard]] bool has_clients(const Profile& profile);

// Processes that worked for clients, the busiest for them first; with `pids`, those alone. That it
// worked for itself is in no other row, so that a server's rows add up to what it costs.
[[nodiscard]] std::vector<Server> servers_of(const Profile& profile,
                                             std::span<const uint32_t> pids = {});

// The same profile, but what a server did for a client is served to the client. Its source is
// "server:COMM", and its stack begins with the server. Sums are what they were.
[[nodiscard]] Profile charged_to_clients(const Profile& profile);

// What reports by client are of: the profile is charged to clients, and rows are processes again.
// All else stays as it is.
By charge_as_asked(Profile& profile, By by);

}  // namespace pkprof
