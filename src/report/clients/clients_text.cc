// SPDX-License-Identifier: Apache-2.0
// Percentages are of one CPU, as the ledger's; a share is of what the server did for all clients.
#include "report/clients/clients_text.h"

#include <algorithm>

#include "report/clean.h"
#include "report/clients.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/view.h"

namespace pkprof {
namespace {

constexpr size_t number_width = 7;
constexpr size_t numbers = 5;
constexpr size_t requests_width = 9;
constexpr size_t each_width = 8;
constexpr size_t least_client = 16;
constexpr size_t most_client = 32;

std::string name_of(const Label& label) {
  if (label.kind == LabelKind::process)
    return label.host_prefix() + label.comm + "[" + label.pid_text() + "]";
  return label.name();
}

class ClientsText {
 public:
  ClientsText(const Profile& profile, const ReportOptions& options)
      : profile_(profile), options_(options), servers_(servers_of(profile, options.pids)) {
    const size_t fixed = 2 + numbers * (number_width + 1) + requests_width + 1 + each_width + 1;
    const size_t left = options.width > fixed ? options.width - fixed : 0;
    client_width_ = std::clamp(left, least_client, most_client);
  }

  std::string run() {
    line(options_.style.bold("For which client was the server working?"));
    if (servers_.empty())
      line("  no server worked for a client, or the recording was made without --clients");
    uint64_t small_ns = 0;
    size_t hidden = 0;
    for (const Server& server : servers_) {
      if (!reads_zero(server.for_clients_ns, profile_.meta.duration_ns)) {
        table(server);
        continue;
      }
      ++hidden;
      small_ns += server.for_clients_ns;
    }
    if (hidden)
      line("\n(" + std::to_string(hidden) +
           " more servers: " + percent(small_ns, profile_.meta.duration_ns) + ")");
    if (!servers_.empty()) {
      line("");
      line(options_.style.dim(
          "        % of one CPU. SHARE: of what the server did for its clients.\n"
          "        EACH: CPU time of the server's for a request."));
    }
    return out_ + incomplete_text(profile_, options_);
  }

 private:
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] std::string cell(uint64_t ns) const {
    return " " + pad_left(percent_or_dash(ns, profile_.meta.duration_ns), number_width);
  }
  [[nodiscard]] std::string way_of(const ClientRow& row) const {
    std::string way;
    for (const LabelId via : profile_.clients()[row.client].via)
      way += (way.empty() ? "via " : ", ") + name_of(profile_.labels()[via]);
    return way;
  }

  void table(const Server& server) {
    line("");
    line(options_.style.bold(clean(name_of(profile_.labels()[server.label]), options_.unicode)));
    std::string head = "  " + pad_right("CLIENT", client_width_);
    for (const char* title : {"USER", "OWN", "ASYNC", "TOTAL", "SHARE"})
      head += " " + pad_left(title, number_width);
    head += " " + pad_left("REQUESTS", requests_width) + " " + pad_left("EACH", each_width);
    line(options_.style.bold(head));
    const size_t limit = options_.limit ? options_.limit : SIZE_MAX;
    size_t shown = 0;
    ClientRow rest;
    size_t hidden = 0;
    for (const ClientRow& row : server.clients) {
      const bool itself = row.client == 0;
      if (!itself && (shown >= limit || reads_zero(row.total_ns(), profile_.meta.duration_ns))) {
        ++hidden;
        rest.user_ns += row.user_ns;
        rest.own_ns += row.own_ns;
        rest.async_ns += row.async_ns;
        rest.requests += row.requests;
        continue;
      }
      if (itself && hidden) one(server, "(" + std::to_string(hidden) + " more)", rest, "");
      one(server,
          itself ? "itself" : name_of(profile_.labels()[profile_.clients()[row.client].label]), row,
          way_of(row), itself);
      ++shown;
    }
  }

  void one(const Server& server, const std::string& name, const ClientRow& row,
           const std::string& way, bool itself = false) {
    std::string text =
        "  " + pad_right(fit(clean(name, options_.unicode), client_width_, options_.unicode),
                         client_width_);
    for (const uint64_t ns : {row.user_ns, row.own_ns, row.async_ns, row.total_ns()})
      text += cell(ns);
    text += " " + pad_left(itself ? "" : percent_or_dash(row.total_ns(), server.for_clients_ns),
                           number_width);
    if (row.requests) {
      text += " " + pad_left(std::to_string(row.requests), requests_width);
      text += " " + pad_left(duration_text(row.total_ns() / row.requests), each_width);
    }
    line(text);
    if (!way.empty())
      line("    " + options_.style.dim(
                        fit(clean(way, options_.unicode), options_.width - 4, options_.unicode)));
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const std::vector<Server> servers_;
  std::string out_;
  size_t client_width_ = least_client;
};

}  // namespace

std::string clients_text(const Profile& profile, const ReportOptions& options) {
  return ClientsText(profile, options).run();
}

extern const ReportView clients_view{"clients", clients_text, clients_json};

}  // namespace pkprof
