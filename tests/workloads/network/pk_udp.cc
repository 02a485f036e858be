// SPDX-License-Identifier: Apache-2.0
// UDP in the shapes that make packet accounting hard: floods, several receivers in known
// proportions, multicast, sockets shared by many processes.
#include "udp.h"

namespace {

int run(int argc, char** argv) {
  using namespace pkprof::workload;
  ArgParser app("UDP sender and receiver.");
  app.show_defaults();
  app.require_subcommand();

  UdpSend send;
  auto sender = app.subcommand("send", "send datagrams");
  send.common.add_to(sender);
  sender.add("--to", send.to, "address; the group with --multicast");
  sender.add("--multicast", send.multicast, "send to this group, out of --device");
  sender.add("--device", send.device, "network device for multicast");
  sender.add("--port", send.ports, "destination port, or several: 7001,7002")
      .separated_by(',')
      .required();
  sender.add("--ratio", send.ratio, "packets to each port in turn: 3:1").separated_by(':');
  sender.add("--size", send.size, "payload bytes").range(1, 65507);
  sender.add("--pps", send.pps, "packets a second; 0: as many as it can");
  sender.add("--count", send.count, "end after so many packets; 0: no limit");
  sender.add("--connect", send.connected, "connect the socket and use send()");

  UdpRecv recv;
  auto receiver = app.subcommand("recv", "receive and count datagrams");
  recv.common.add_to(receiver);
  receiver.add("--bind", recv.bind, "local address (default: all of IPv6 and IPv4)");
  receiver.add("--port", recv.port, "local port").required();
  receiver.add("--mode", recv.mode, "how to wait: block, poll, busy, epoll or nap")
      .one_of({"block", "poll", "busy", "epoll", "nap"});
  receiver.add("--call", recv.call, "how to read: recvfrom, recvmsg, recvmmsg or read")
      .one_of({"recvfrom", "recvmsg", "recvmmsg", "read"});
  receiver.add("--multicast", recv.multicast, "join this group on --device");
  receiver.add("--device", recv.device, "network device for multicast");
  receiver.add("--rcvbuf", recv.rcvbuf, "SO_RCVBUFFORCE in bytes");
  receiver.add("--work-us", recv.work_us, "CPU time to burn for each packet");
  const auto prefork = receiver.add("--prefork", recv.prefork, "processes sharing one socket");
  receiver.add("--reuseport", recv.reuseport, "processes with a socket each").excludes(prefork);
  if (const auto end = app.parse(argc, argv)) return *end;

  if (sender.used()) {
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
