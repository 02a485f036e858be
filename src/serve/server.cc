// SPDX-License-Identifier: Apache-2.0
// HTTP by libevent. Whoever has the token gets the page, however many others connect.
#include "serve/server.h"

#include <event2/keyvalq_struct.h>
#include <signal.h>
#include <sys/random.h>

#include <array>
#include <string_view>

#include "serve/http_service.h"

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
    const auto port = http_.listen("127.0.0.1", served_.port,
                                   [this](evhttp_request* request) { answer(request); });
    if (!port) return std::unexpected(port.error());
    for (const int signal : {SIGINT, SIGTERM}) http_.end_at(signal, EV_SIGNAL | EV_PERSIST);
    served_.ready("http://127.0.0.1:" + std::to_string(*port) + "/?token=" + token_, *port);
    return http_.run();
  }

 private:
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
    http_.allow(request);
    const char* path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    if (path && std::string_view(path) != "/")
      return reply(request, 404, "text/plain", "There is only one page.\n");
    const auto page = served_.page();
    if (!page) return reply(request, 500, "text/plain", page.error().message + "\n");
    reply(request, 200, "text/html", *page);
  }

  static void reply(evhttp_request* request, int status, const std::string& type,
                    std::string_view body) {
    const std::string content = type + "; charset=utf-8";
    HttpService::reply(request, status,
                       {{"Content-Type", content.c_str()},
                        {"Cache-Control", "no-store"},
                        {"Referrer-Policy", "no-referrer"},
                        {"X-Frame-Options", "DENY"},
                        {"Content-Security-Policy", "frame-ancestors 'none'"},
                        {"Cross-Origin-Opener-Policy", "same-origin"},
                        {"Cross-Origin-Resource-Policy", "same-origin"}},
                       body);
  }

  const Served& served_;
  std::string token_;
  HttpService http_;
};

}  // namespace

Result<> serve(const Served& served) {
  return Server(served).run();
}

}  // namespace pkprof
