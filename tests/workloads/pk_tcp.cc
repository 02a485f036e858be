// SPDX-License-Identifier: Apache-2.0
// TCP in its everyday shapes: bulk streams (also by splice and sendfile, also paced), requests and
// responses, connections that come and go; served by one process or by several.
#include "tcp.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  CLI::App app("TCP server and clients.");
  app.option_defaults()->always_capture_default();
  app.require_subcommand(1);

  TcpServe serve;
  auto* server = app.add_subcommand("serve", "accept connections and sink or echo the bytes");
  serve.common.add_to(*server);
  server->add_option("--bind", serve.bind, "local address (default: all of IPv6 and IPv4)");
  server->add_option("--port", serve.port, "local port")->required();
  server->add_option("--mode", serve.mode, "sink: count the bytes; echo: send them back")
      ->check(CLI::IsMember({"sink", "echo"}));
  server->add_flag("--splice", serve.splice, "move the bytes with splice()");
  server->add_option("--prefork", serve.prefork, "processes that share the listening socket");
  server->add_option("--work-us", serve.work_us, "CPU time to burn for each read");

  TcpClient client;
  const auto add_client = [&](const char* name, const char* text, const char* rate_text) {
    auto* sub = app.add_subcommand(name, text);
    client.common.add_to(*sub);
    sub->add_option("--to", client.to, "address")->required();
    sub->add_option("--port", client.port, "port")->required();
    sub->add_option("--connections", client.connections, "connections at a time")
        ->check(CLI::Range(1, 1000));
    sub->add_option("--rate", client.rate, rate_text);
    sub->add_option("--congestion", client.congestion, "congestion control: cubic, reno, bbr");
    return sub;
  };
  auto* stream = add_client("stream", "send bytes", "bytes a second in all; 0: no limit");
  stream->add_option("--size", client.size, "bytes of a write (default 65536)");
  stream->add_option("--pacing", client.pacing, "SO_MAX_PACING_RATE, bytes a second");
  auto* splice = stream->add_flag("--splice", client.splice, "send with splice()");
  stream->add_flag("--sendfile", client.sendfile, "send with sendfile()")->excludes(splice);
  auto* rr = add_client("rr", "requests and responses with an echo server",
                        "requests a second in all; 0: no limit");
  rr->add_option("--size", client.size, "bytes of a request and its response (default 64)");
  auto* connect = add_client("connect", "connect and close", "connections a second; 0: no limit");
  CLI11_PARSE(app, argc, argv);

  if (server->parsed()) return tcp_serve(serve);
  if (client.size <= 0) client.size = stream->parsed() ? 65536 : 64;
  if (rr->parsed()) return tcp_rr(client);
  if (connect->parsed()) return tcp_connect(client);
  return tcp_stream(client);
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
