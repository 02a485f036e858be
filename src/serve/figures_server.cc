// SPDX-License-Identifier: Apache-2.0
#include "serve/figures_server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "serve/connections.h"

namespace pkprof {
namespace {

class Server : public FiguresServer {
 public:
  explicit Server(std::function<std::string()> text) : text_(std::move(text)) {}
  ~Server() override {
    if (!thread_.joinable()) return;
    eventfd_write(is_to_end_.get(), 1);
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Result<> listen(const std::string& address, uint16_t port) {
    base_.reset(event_base_new());
    if (base_) http_.reset(evhttp_new(base_.get()));
    if (!http_) return fail("serving: libevent has no means to wait here");
    event_set_log_callback([](int, const char*) {});
    connections_.emplace(base_.get(), http_.get());
    limit_requests(http_.get());
    evhttp_set_gencb(
        http_.get(),
        [](evhttp_request* request, void* self) { static_cast<Server*>(self)->answer(request); },
        this);
    auto* socket = evhttp_bind_socket_with_handle(http_.get(), address.c_str(), port);
    if (!socket) return fail_errno("listening at " + address + ", port " + std::to_string(port));
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    if (getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&bound), &size))
      return fail_errno("listening");
    port_ =
        ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    end_.reset(event_new(
        base_.get(), is_to_end_.get(), EV_READ,
        [](evutil_socket_t, short, void* base) {
          event_base_loopbreak(static_cast<event_base*>(base));
        },
        base_.get()));
    event_add(end_.get(), nullptr);
    thread_ = std::thread([base = base_.get()] { event_base_dispatch(base); });
    return {};
  }
  [[nodiscard]] uint16_t port() const override { return port_; }

 private:
  void answer(evhttp_request* request) {
    const char* path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    const bool is_there = path && std::string_view(path) == "/metrics";
    if (is_there) connections_->allow(request);
    const std::string body = is_there ? text_() : "There is only /metrics.\n";
    evkeyvalq* headers = evhttp_request_get_output_headers(request);
    evhttp_add_header(headers, "Content-Type",
                      is_there ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Connection", "close");
    const std::unique_ptr<evbuffer, Freed<evbuffer_free>> buffer(evbuffer_new());
    // libevent would send it all the same.
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
      evbuffer_add(buffer.get(), body.data(), body.size());
    evhttp_send_reply(request, is_there ? 200 : 404, nullptr, buffer.get());
  }

  const std::function<std::string()> text_;
  uint16_t port_ = 0;
  EventBase base_;
  HttpServer http_;
  std::optional<Connections> connections_;
  const Fd is_to_end_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Event end_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<FiguresServer>> FiguresServer::start(const std::string& address,
                                                            uint16_t port,
                                                            std::function<std::string()> text) {
  auto server = std::make_unique<Server>(std::move(text));
  if (auto r = server->listen(address, port); !r) return std::unexpected(r.error());
  return server;
}

}  // namespace pkprof
