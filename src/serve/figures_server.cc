// SPDX-License-Identifier: Apache-2.0
#include "serve/figures_server.h"

#include <sys/eventfd.h>

#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "serve/http_service.h"

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

  Result<> start(const std::string& address, uint16_t port) {
    const auto bound =
        http_.listen(address, port, [this](evhttp_request* request) { answer(request); });
    if (!bound) return std::unexpected(bound.error());
    port_ = *bound;
    http_.end_at(is_to_end_.get(), EV_READ);
    thread_ = std::thread([this] { (void)http_.run(); });
    return {};
  }
  [[nodiscard]] uint16_t port() const override { return port_; }

 private:
  void answer(evhttp_request* request) {
    const char* path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    if (!path || std::string_view(path) != "/metrics")
      return HttpService::reply(request, 404, {{"Content-Type", "text/plain"}},
                                "There is only /metrics.\n");
    http_.allow(request);
    HttpService::reply(request, 200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                       text_());
  }

  const std::function<std::string()> text_;
  const Fd is_to_end_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  uint16_t port_ = 0;
  HttpService http_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<FiguresServer>> FiguresServer::start(const std::string& address,
                                                            uint16_t port,
                                                            std::function<std::string()> text) {
  auto server = std::make_unique<Server>(std::move(text));
  if (auto r = server->start(address, port); !r) return std::unexpected(r.error());
  return server;
}

}  // namespace pkprof
