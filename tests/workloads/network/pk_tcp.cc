// SPDX-License-Identifier: Apache-2.0
// TCP in its everyday shapes: bulk streams (also by splice and sendfile, also paced), requests and
// responses, connections that come and go; served by one process or by several.
#include "tcp.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  ArgParser app("TCP server and clients.");
  app.show_defaults();
  app.require_subcommand();

  TcpServe serve;
  auto server = app.subcommand("serve", "accept connections and sink or echo the bytes");
  serve.common.add_to(server);
  server.add("--bind", serve.bind, "local address (default: all of IPv6 and IPv4)");
  server.add("--port", serve.port, "local port").required();
  server.add("--mode", serve.mode, "sink: count the bytes; echo: send them back")
      .one_of({"sink", "echo"});
  server.add("--splice", serve.splice, "move the bytes with splice()");
  server.add("--prefork", serve.prefork, "processes that share the listening socket");
  server.add("--accept-ms", serve.accept_ms, "sleep so long after each connection accepted");
  server.add("--work-us", serve.work_us, "CPU time to burn for each read");

  TcpClient client;
  const auto add_client = [&](const char* name, const char* text, const char* rate_text) {
    auto sub = app.subcommand(name, text);
    client.common.add_to(sub);
    sub.add("--to", client.to, "address").required();
    sub.add("--port", client.port, "port").required();
    sub.add("--connections", client.connections, "connections at a time").range(1, 1000);
    sub.add("--rate", client.rate, rate_text);
    sub.add("--congestion", client.congestion, "congestion control: cubic, reno, bbr");
    return sub;
  };
  auto stream = add_client("stream", "send bytes", "bytes a second in all; 0: no limit");
  stream.add("--size", client.size, "bytes of a write (default 65536)");
  stream.add("--pacing", client.pacing, "SO_MAX_PACING_RATE, bytes a second");
  const auto splice = stream.add("--splice", client.splice, "send with splice()");
  stream.add("--sendfile", client.sendfile, "send with sendfile()").excludes(splice);
  auto rr = add_client("rr", "requests and responses with an echo server",
                       "requests a second in all; 0: no limit");
  rr.add("--size", client.size, "bytes of a request and its response (default 64)");
  auto connect = add_client("connect", "connect and close", "connections a second; 0: no limit");
  if (const auto end = app.parse(argc, argv)) return *end;

  if (server.used()) return tcp_serve(serve);
  if (client.size <= 0) client.size = stream.used() ? 65536 : 64;
  if (rr.used()) return tcp_rr(client);
  if (connect.used()) return tcp_connect(client);
  return tcp_stream(client);
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
