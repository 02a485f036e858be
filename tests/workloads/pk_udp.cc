// SPDX-License-Identifier: Apache-2.0
// UDP in the shapes that make packet accounting hard: floods, several receivers in known
// proportions, multicast, sockets shared by many processes.
#include "udp.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  CLI::App app("UDP sender and receiver.");
  app.option_defaults()->always_capture_default();
  app.require_subcommand(1);

  UdpSend send;
  auto* sender = app.add_subcommand("send", "send datagrams");
  send.common.add_to(*sender);
  sender->add_option("--to", send.to, "address; the group with --multicast");
  sender->add_option("--multicast", send.multicast, "send to this group, out of --device");
  sender->add_option("--device", send.device, "network device for multicast");
  sender->add_option("--port", send.ports, "destination port, or several: 7001,7002")
      ->delimiter(',')
      ->required();
  sender->add_option("--ratio", send.ratio, "packets to each port in turn: 3:1")->delimiter(':');
  sender->add_option("--size", send.size, "payload bytes")->check(CLI::Range(1, 65507));
  sender->add_option("--pps", send.pps, "packets a second; 0: as many as it can");
  sender->add_option("--count", send.count, "end after so many packets; 0: no limit");
  sender->add_flag("--connect", send.connected, "connect the socket and use send()");

  UdpRecv recv;
  auto* receiver = app.add_subcommand("recv", "receive and count datagrams");
  recv.common.add_to(*receiver);
  receiver->add_option("--bind", recv.bind, "local address (default: all of IPv6 and IPv4)");
  receiver->add_option("--port", recv.port, "local port")->required();
  receiver->add_option("--mode", recv.mode, "how to wait: block, poll, busy, epoll or nap")
      ->check(CLI::IsMember({"block", "poll", "busy", "epoll", "nap"}));
  receiver->add_option("--call", recv.call, "how to read: recvfrom, recvmsg, recvmmsg or read")
      ->check(CLI::IsMember({"recvfrom", "recvmsg", "recvmmsg", "read"}));
  receiver->add_option("--multicast", recv.multicast, "join this group on --device");
  receiver->add_option("--device", recv.device, "network device for multicast");
  receiver->add_option("--rcvbuf", recv.rcvbuf, "SO_RCVBUFFORCE in bytes");
  receiver->add_option("--work-us", recv.work_us, "CPU time to burn for each packet");
  auto* prefork = receiver->add_option("--prefork", recv.prefork, "processes sharing one socket");
  receiver->add_option("--reuseport", recv.reuseport, "processes with a socket each")
      ->excludes(prefork);
  CLI11_PARSE(app, argc, argv);

  if (sender->parsed()) {
    if (send.to.empty() == send.multicast.empty()) die("either --to or --multicast", false);
    if (!send.ratio.empty() && send.ratio.size() != send.ports.size()) {
      die("--ratio wants one number for each port", false);
    }
    return udp_send(send);
  }
  return udp_recv(recv);
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
