// SPDX-License-Identifier: Apache-2.0
// Servers of the usual shapes, which say themselves what they did for whom.
#include "clients_scenario.h"

#include <mqueue.h>
#include <unistd.h>

namespace pkprof::accuracy {
namespace {

TEST_F(ClientsTest, OneThreadByTurns) {
  const int server = answer({"--mode", "turns", "--port", "9301"});
  expect_two({"--port", "9301"}, {server});
}

TEST_F(ClientsTest, UnixSocket) {
  const int server = answer({"--mode", "turns", "--unix", dir_.file("socket")});
  expect_two({"--unix", dir_.file("socket")}, {server});
}

TEST_F(ClientsTest, Datagrams) {
  const int server = answer({"--mode", "datagrams", "--port", "9302"});
  expect_two({"--port", "9302", "--datagrams"}, {server});
}

TEST_F(ClientsTest, Batches) {
  const int server = answer({"--mode", "batches", "--port", "9303"});
  expect_two({"--port", "9303"}, {server}, pools);
}

TEST_F(ClientsTest, PoolOfThreads) {
  const int server = answer({"--mode", "pool", "--threads", "3", "--port", "9304"});
  expect_two({"--port", "9304"}, {server}, pools);
}

TEST_F(ClientsTest, ProcessForEachConnection) {
  const int server = answer({"--mode", "processes", "--port", "9305"});
  const Argv where = {"--port", "9305"};
  const int idle = stay_idle(where);
  const int one = ask(where, "1500", "100");
  const int other = ask(where, "500", "100");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record(live::with_children(server, 3));
  expect(charged, one, other, truth(one, other), {idle});
}

TEST_F(ClientsTest, FifoOfOneWriter) {
  const int server = take({"--fifo", dir_.file("fifo")});
  const int client = ask({"--fifo", dir_.file("fifo")}, "800", "300");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record({server});
  EXPECT_GE(charged.of(client), 0.97 * charged.all());
  EXPECT_GE(charged.all(), 0.5);
}

// Of what a busy reader takes without having slept no hook tells the writer. What is known is
// right.
constexpr ClientLimits several_writers = {.known = 50, .ratio = 15, .bystander = 1};

TEST_F(ClientsTest, FifoOfSeveralWriters) {
  const int server = take({"--fifo", dir_.file("fifo")});
  expect_two({"--fifo", dir_.file("fifo")}, {server}, several_writers);
}

class MessageQueueClientsTest : public ClientsTest {
 protected:
  void SetUp() override {
    ClientsTest::SetUp();
    if (!IsSkipped()) server_ = take({"--queue", name_});
  }
  void TearDown() override { mq_unlink(name_.c_str()); }
  int ask_queue(const std::string& rate) {
    const int client = ask({"--queue", name_}, rate, "300");
    std::this_thread::sleep_for(300ms);
    return client;
  }

  const std::string name_ = "/pk_test" + std::to_string(getpid());
  int server_ = 0;
};

TEST_F(MessageQueueClientsTest, OfOneWriter) {
  const int client = ask_queue("800");
  Charged charged = record({server_});
  EXPECT_GE(charged.of(client), 0.97 * charged.all());
  EXPECT_GE(charged.all(), 0.5);
}

// Nothing tells whose message a busy reader takes.
TEST_F(MessageQueueClientsTest, OfSeveralWritersNobodyIsKnown) {
  ask_queue("800");
  ask_queue("800");
  Charged charged = record({server_});
  EXPECT_GE(charged.itself, 0.99 * charged.all());
  EXPECT_GE(charged.all(), 0.5);
}

// Work before anything is read.
class AcceptingClientsTest : public ClientsTest {
 protected:
  // Clients that connect for each request.
  struct Asks {
    std::string rate;
    Argv to;
  };
  void expect_accepted(const std::string& mode, const Argv& at, const std::string& cost_us,
                       const Asks& at_one, const Asks& at_other, const ClientLimits& limits = {}) {
    const bool forks = mode == "forks";
    Argv how = {"--mode", mode, "--threads", "3", "--bind", "0.0.0.0", "--cost-us", cost_us};
    how.insert(how.end(), at.begin(), at.end());
    const int server = answer(how);
    const int idle = stay_idle(at);
    serve("redis-server", {"--port", "9399", "--save", "", "--dir", dir_.path()});
    const int elsewhere = text({"--port", "9399", "--text", "GET k\\r\\n", "--answer-bytes", "5"})(
        "200", truth_file());
    const auto start = [&](const Asks& asks) {
      Argv where = at;
      where.emplace_back("--anew");
      where.insert(where.end(), asks.to.begin(), asks.to.end());
      return ask(where, asks.rate, "0");
    };
    const int one = start(at_one);
    const int other = start(at_other);
    std::this_thread::sleep_for(300ms);
    // Its children are there for a moment only.
    const Charged charged = record({server}, forks ? "pk_answer" : "");
    expect(charged, one, other, truth(one, other), {idle, elsewhere}, limits);
  }
};

TEST_F(AcceptingClientsTest, OneThread) {
  expect_accepted("accepts", {"--port", "9331"}, "3000", {"90", {}}, {"30", {}});
}

// A connection to 127.0.0.10 costs ten times as much as one to 127.0.0.1.
TEST_F(AcceptingClientsTest, OneThreadAtOtherCosts) {
  expect_accepted("accepts", {"--port", "9332"}, "600", {"60", {}}, {"60", {"--to", "127.0.0.10"}});
}

TEST_F(AcceptingClientsTest, UnixSocket) {
  expect_accepted("accepts", {"--unix", dir_.file("socket")}, "3000", {"90", {}}, {"30", {}});
}

TEST_F(AcceptingClientsTest, AProcessForEach) {
  expect_accepted("forks", {"--port", "9333"}, "3000", {"90", {}}, {"30", {}});
}

TEST_F(AcceptingClientsTest, SeveralThreads) {
  expect_accepted("acceptors", {"--port", "9334"}, "3000", {"90", {}}, {"30", {}}, pools);
}

TEST_F(ClientsTest, ThroughAProxy) {
  const int last = answer({"--mode", "turns", "--port", "9306"});
  const int proxy = answer({"--mode", "proxy", "--port", "9307", "--upstream-port", "9306"});
  const Argv where = {"--port", "9307"};
  const int idle = stay_idle(where);
  const int one = ask(where, "900", "100");
  const int other = ask(where, "300", "100");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record({last, proxy});
  expect(charged, one, other, truth(one, other), {idle, proxy}, pools);
}

}  // namespace
}  // namespace pkprof::accuracy
