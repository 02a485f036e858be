// SPDX-License-Identifier: Apache-2.0
// Packets that go through a third namespace: over a bridge, where all of the work is for the two
// ends, and through a router, whose work is for nobody here.
#include <optional>

#include "table.h"

namespace pkprof::accuracy {
namespace {

using live::must;
using testnet::Namespace;

class MiddleTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    must(testnet::remove_leftovers());
    client_.emplace(must(Namespace::create("client")));
    middle_.emplace(must(Namespace::create("middle")));
    server_.emplace(must(Namespace::create("server")));
    hog_ = stage_.start_hog(live::last_cpu());
  }

  void join(const char* near_client, const char* server_address, const char* near_server) {
    must(testnet::add_veth({*client_, "veth0", {"10.79.0.1/24"}},
                           {*middle_, "port1",
                            near_client == nullptr ? std::vector<std::string>{}
                                                   : std::vector<std::string>{near_client}}));
    must(testnet::add_veth({*server_, "veth0", {server_address}},
                           {*middle_, "port2",
                            near_server == nullptr ? std::vector<std::string>{}
                                                   : std::vector<std::string>{near_server}}));
    must(middle_->set_rps("port1", 1UL << live::last_cpu()));
    must(server_->set_rps("veth0", 1UL << live::last_cpu()));
  }

  live::Turn turn_;
  live::Stage stage_;
  std::optional<Namespace> client_, middle_, server_;
  int hog_ = 0;
};

TEST_F(MiddleTest, Bridge) {
  join(nullptr, "10.79.0.2/24", nullptr);
  must(middle_->add_bridge("br0", {"port1", "port2"}));
  const int server =
      stage_.start(&*server_, {"pk_tcp", "serve", "--port", "7001", "--mode", "echo"}, 0);
  const int client =
      stage_.start(&*client_, {"pk_tcp", "rr", "--to", "10.79.0.2", "--port", "7001"}, 0);
  measure("TCP over a bridge", {{server, client}, hog_, {}}, {95, 5});
}

TEST_F(MiddleTest, BridgeUdp) {
  join(nullptr, "10.79.0.2/24", nullptr);
  must(middle_->add_bridge("br0", {"port1", "port2"}));
  const int receiver = stage_.start(&*server_, {"pk_udp", "recv", "--port", "7001"}, 0);
  const int sender =
      stage_.start(&*client_, {"pk_udp", "send", "--to", "10.79.0.2", "--port", "7001"}, 0);
  measure("UDP over a bridge", {{receiver, sender}, hog_, {}}, {95, 5});
}

TEST_F(MiddleTest, Forwarding) {
  join("10.79.0.254/24", "10.79.1.2/24", "10.79.1.254/24");
  must(middle_->enable_forwarding());
  must(client_->ip({"route", "add", "default", "via", "10.79.0.254"}));
  must(server_->ip({"route", "add", "default", "via", "10.79.1.254"}));
  const int receiver = stage_.start(&*server_, {"pk_udp", "recv", "--port", "7001"}, 0);
  const int sender =
      stage_.start(&*client_, {"pk_udp", "send", "--to", "10.79.1.2", "--port", "7001"}, 0);
  measure("UDP through a router", {{receiver, sender}, hog_, {}}, {95, 5});
}

}  // namespace
}  // namespace pkprof::accuracy
