// SPDX-License-Identifier: Apache-2.0
// HTTP by libevent, for as long as this is there: what both servers have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "serve/connections.h"

namespace pkprof {

class HttpService {
 public:
  HttpService() = default;
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Asked with GET and HEAD, and without a body. Each request is answered by reply().
  using Answer = std::function<void(evhttp_request* request)>;
  // The port; 0 takes any that is free.
  Result<uint16_t> listen(const std::string& address, uint16_t port, Answer answer);
  // It is one that may ask: it has the time that its answer takes.
  void allow(evhttp_request* request) { connections_->allow(request); }
  using Headers = std::vector<std::pair<const char*, const char*>>;
  static void reply(evhttp_request* request, int status, const Headers& headers,
                    std::string_view body);

  // Ends run(), when that descriptor can be read or that signal comes.
  void end_at(int fd_or_signal, short events);
  Result<> run();

 private:
  Answer answer_;
  EventBase base_;
  HttpServer http_;
  std::optional<Connections> connections_;
  std::vector<Event> ends_;
};

}  // namespace pkprof
