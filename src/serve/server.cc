// SPDX-License-Identifier: Apache-2.0
// HTTP by libevent. Whoever has the token gets the page, however many others connect.
#include "serve/server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "serve/connections.h"

namespace pkprof {
namespace {

Result<std::string> new_token() {
  std::array<unsigned char, 16> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return fail_errno("making a token");
  std::string token;
  for (const unsigned char byte : random) {
    constexpr std::string_view hex = "0123456789abcdef";
    token += hex[byte >> 4];
    token += hex[byte & 15];
  }
  return token;
}

// As long for a wrong one as for another: how much of a guess was right does not show.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

class Server {
 public:
  explicit Server(const Served& served) : served_(served) {}

  Result<> run() {
    auto token = new_token();
    if (!token) return std::unexpected(token.error());
    token_ = std::move(*token);
    base_.reset(event_base_new());
    if (!base_) return fail("serving: libevent has no means to wait here");
    http_.reset(evhttp_new(base_.get()));
    if (!http_) return fail("serving: out of memory");
    // Where there are no descriptors, all that could be said is said once for each that waits.
    event_set_log_callback([](int, const char*) {});
    connections_.emplace(base_.get(), http_.get());
    limit_requests(http_.get());
    evhttp_set_gencb(
        http_.get(),
        [](evhttp_request* request, void* self) { static_cast<Server*>(self)->answer(request); },
        this);
    auto port = listen();
    if (!port) return std::unexpected(port.error());
    for (size_t i = 0; i < ends_.size(); ++i) {
      constexpr int signals[] = {SIGINT, SIGTERM};
      ends_[i].reset(evsignal_new(
          base_.get(), signals[i],
          [](evutil_socket_t, short, void* base) {
            event_base_loopbreak(static_cast<event_base*>(base));
          },
          base_.get()));
      event_add(ends_[i].get(), nullptr);
    }
    served_.ready("http://127.0.0.1:" + std::to_string(*port) + "/?token=" + token_, *port);
    if (event_base_dispatch(base_.get()) < 0) return fail("serving: waiting for requests failed");
    return {};
  }

 private:
  Result<uint16_t> listen() {
    const auto* socket = evhttp_bind_socket_with_handle(http_.get(), "127.0.0.1", served_.port);
    if (!socket)
      return fail_errno("listening on port " + std::to_string(served_.port) +
                        " (--port 0 takes any that is free)");
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    const int fd = evhttp_bound_socket_get_fd(const_cast<evhttp_bound_socket*>(socket));
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size))
      return fail_errno("listening");
    return ntohs(address.sin_port);
  }

  [[nodiscard]] bool is_allowed(evhttp_request* request) const {
    const char* host = evhttp_request_get_host(request);  // without its port
    if (!host) return false;
    const std::string_view name = host;
    if (name != "127.0.0.1" && name != "localhost") return false;
    // Another site's page asks with where it is from.
    if (evhttp_find_header(evhttp_request_get_input_headers(request), "Origin")) return false;
    const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
    const char* query = evhttp_uri_get_query(uri);
    evkeyvalq words{};
    if (!query || evhttp_parse_query_str(query, &words)) return false;
    const char* token = evhttp_find_header(&words, "token");
    const bool allowed = token && is_same(token, token_);
    evhttp_clear_headers(&words);
    return allowed;
  }

  void answer(evhttp_request* request) {
    if (!is_allowed(request))
      return reply(request, 403, "text/plain",
                   "Not without the token: open the address that pkprof serve printed.\n");
    connections_->allow(request);
    const char* path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    if (path && std::string_view(path) != "/")
      return reply(request, 404, "text/plain", "There is only one page.\n");
    const auto page = served_.page();
    if (!page) return reply(request, 500, "text/plain", page.error().message + "\n");
    reply(request, 200, "text/html", *page);
  }

  static void reply(evhttp_request* request, int status, const std::string& type,
                    std::string_view body) {
    evkeyvalq* headers = evhttp_request_get_output_headers(request);
    const std::string content = type + "; charset=utf-8";
    for (const auto& [name, value] : {std::pair{"Content-Type", content.c_str()},
                                      {"Cache-Control", "no-store"},
                                      {"Referrer-Policy", "no-referrer"},
                                      {"X-Content-Type-Options", "nosniff"},
                                      {"X-Frame-Options", "DENY"},
                                      {"Content-Security-Policy", "frame-ancestors 'none'"},
                                      {"Cross-Origin-Opener-Policy", "same-origin"},
                                      {"Cross-Origin-Resource-Policy", "same-origin"},
                                      {"Connection", "close"}})
      evhttp_add_header(headers, name, value);
    const std::unique_ptr<evbuffer, Freed<evbuffer_free>> buffer(evbuffer_new());
    // libevent would send it all the same.
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
      evbuffer_add(buffer.get(), body.data(), body.size());
    evhttp_send_reply(request, status, nullptr, buffer.get());
  }

  const Served& served_;
  std::string token_;
  EventBase base_;
  HttpServer http_;
  std::optional<Connections> connections_;
  std::array<Event, 2> ends_;
};

}  // namespace

Result<> serve(const Served& served) {
  return Server(served).run();
}

}  // namespace pkprof
