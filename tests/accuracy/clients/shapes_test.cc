// SPDX-License-Identifier: Apache-2.0
// Servers of the usual shapes, which say themselves what they did for whom.
#include "clients_scenario.h"

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
