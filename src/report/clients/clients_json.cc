// SPDX-License-Identifier: Apache-2.0
#include "report/clients.h"
#include "report/clients/clients_text.h"
#include "report/json_header.h"

namespace pkprof {

std::string clients_json(const Profile& profile, const ReportOptions& options) {
  Json report = json_header(profile, "pkprof.clients/1", By::pid);
  Json& servers = report["servers"] = Json::array();
  for (const Server& server : servers_of(profile, options.pids)) {
    const Label& label = profile.labels()[server.label];
    servers.push_back({{"pid", label.pid},
                       {"comm", label.comm},
                       {"for_clients", for_clients(profile, server)},
                       {"for_itself_ns", server.for_itself_ns},
                       {"itself",
                        {{"user_ns", server.clients.back().user_ns},
                         {"own_ns", server.clients.back().own_ns},
                         {"async_ns", server.clients.back().async_ns}}}});
  }
  return json_line(report);
}

}  // namespace pkprof
