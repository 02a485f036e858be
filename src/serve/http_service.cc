// SPDX-License-Identifier: Apache-2.0
#include "serve/http_service.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace pkprof {
namespace {

constexpr int idle_seconds = 10;
constexpr ev_ssize_t most_header_bytes = 8192;

void limit_requests(evhttp* http) {
  evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_timeout(http, idle_seconds);
  evhttp_set_max_headers_size(http, most_header_bytes);
  evhttp_set_max_body_size(http, 0);
}

}  // namespace

Result<uint16_t> HttpService::listen(const std::string& address, uint16_t port, Answer answer) {
  answer_ = std::move(answer);
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
      [](evhttp_request* request, void* self) {
        static_cast<HttpService*>(self)->answer_(request);
      },
      this);
  auto* socket = evhttp_bind_socket_with_handle(http_.get(), address.c_str(), port);
  if (!socket)
    return fail_errno("listening at " + address + ", port " + std::to_string(port) +
                      " (0 takes any that is free)");
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&bound), &size))
    return fail_errno("listening");
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

void HttpService::reply(evhttp_request* request, int status, const Headers& headers,
                        std::string_view body) {
  evkeyvalq* to = evhttp_request_get_output_headers(request);
  for (const auto& [name, value] : headers) evhttp_add_header(to, name, value);
  evhttp_add_header(to, "X-Content-Type-Options", "nosniff");
  evhttp_add_header(to, "Connection", "close");
  const std::unique_ptr<evbuffer, Freed<evbuffer_free>> buffer(evbuffer_new());
  // libevent would send it all the same.
  if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
    evbuffer_add(buffer.get(), body.data(), body.size());
  evhttp_send_reply(request, status, nullptr, buffer.get());
}

void HttpService::end_at(int fd_or_signal, short events) {
  const auto end = [](evutil_socket_t, short, void* base) {
    event_base_loopbreak(static_cast<event_base*>(base));
  };
  ends_.emplace_back(event_new(base_.get(), fd_or_signal, events, end, base_.get()));
  event_add(ends_.back().get(), nullptr);
}

Result<> HttpService::run() {
  if (event_base_dispatch(base_.get()) < 0) return fail("serving: waiting for requests failed");
  return {};
}

}  // namespace pkprof
