// SPDX-License-Identifier: Apache-2.0
#include "report/clients.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "model/merge.h"
#include "model/source.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

void add(ClientRow& row, Part part, uint64_t ns) {
  switch (part) {
    case Part::user:
      row.user_ns += ns;
      break;
    case Part::own:
      row.own_ns += ns;
      break;
    case Part::async:
      row.async_ns += ns;
      break;
  }
}

}  // namespace

bool has_clients(const Profile& profile) {
  return std::ranges::any_of(profile.samples(),
                             [](const Profile::Sample& sample) { return sample.key.client != 0; });
}

std::vector<Server> servers_of(const Profile& profile, std::span<const uint32_t> pids) {
  using Way = std::pair<LabelId, std::vector<LabelId>>;
  std::map<LabelId, std::map<Way, ClientRow>> found;
  std::map<LabelId, ClientRow> themselves;
  for (const auto& [key, value] : profile.samples()) {
    if (!is_selected(profile.labels()[key.served], pids)) continue;
    if (profile.text(key.source) == counted_calls) continue;
    const Client& client = profile.clients()[key.client];
    ClientRow& row =
        key.client ? found[key.served][{client.label, client.via}] : themselves[key.served];
    row.client = key.client;
    add(row, part_of(profile, key), value.ns);
    row.rules[key.client ? static_cast<size_t>(client.rule) : 0] += value.ns;
  }
  for (const auto& [pair, count] : profile.requests) {
    const auto server = found.find(pair.first);
    if (server == found.end()) continue;
    const Client& client = profile.clients()[pair.second];
    const auto row = server->second.find({client.label, client.via});
    if (row != server->second.end()) row->second.requests += count;
  }
  std::vector<Server> servers;
  for (auto& [label, clients] : found) {
    Server server{.label = label};
    for (auto& [way, row] : clients) {
      server.for_clients_ns += row.total_ns();
      server.clients.push_back(row);
    }
    std::ranges::stable_sort(server.clients, std::greater(), &ClientRow::total_ns);
    server.clients.push_back(themselves[label]);
    server.for_itself_ns = themselves[label].total_ns();
    servers.push_back(std::move(server));
  }
  std::ranges::stable_sort(servers, std::greater(), &Server::for_clients_ns);
  return servers;
}

Profile charged_to_clients(const Profile& profile) {
  std::vector<FrameId> stack;
  return rekeyed(profile, [&stack](Profile& to, SampleKey& key) {
    if (key.client == 0) return;
    const Label server = to.labels()[key.served];
    const auto frames = to.frames_of(key.stack);
    stack.assign(frames.begin(), frames.end());
    stack.push_back(
        to.frame({.kind = FrameKind::pseudo, .function = to.string("served by " + server.name())}));
    const auto call = to.frames_of(to.clients()[key.client].call);
    stack.insert(stack.end(), call.begin(), call.end());
    key.stack = to.stack(stack);
    key.source = to.string("server:" + server.comm);
    key.served = to.clients()[key.client].label;
    key.served_thread = 0;
    key.client = 0;
  });
}

By charge_as_asked(Profile& profile, By by) {
  if (by != By::client) return by;
  profile = charged_to_clients(profile);
  return By::pid;
}

}  // namespace pkprof
