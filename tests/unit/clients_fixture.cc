// SPDX-License-Identifier: Apache-2.0
#include "clients_fixture.h"

#include <string>
#include <vector>

namespace pkprof::test {
namespace {

constexpr uint64_t milli = 1'000'000;

class ClientsMachine {
 public:
  ClientsMachine() {
    profile_.meta = {
        .kernel = "6.18.2-test", .cpus = 2, .duration_ns = 10'000 * milli, .frequency_hz = 1000};
    using enum FrameKind;
    const FrameId main = frame(user, "main");
    parse_ = stack({frame(user, "handle_request"), main});
    read_ = stack({frame(kernel, "do_syscall_64"), frame(pseudo, "syscall:read"), main});
    packets_ = stack({frame(kernel, "net_rx_action"), frame(pseudo, "softirq:NET_RX")});
  }

  Profile run() {
    const LabelId browser = process(100, "browser");
    const LabelId proxy = process(200, "nginx");
    const LabelId database = process(300, "postgres");
    const LabelId cache = process(500, "redis-server");
    const LabelId hostile = process(666, "\x1b[2J<img src=x onerror=alert(1)>");
    const Client by_proxy = {.label = browser, .via = {proxy}, .call = read_};
    work(browser, {}, 500, 100);
    work(proxy, {.label = browser}, 2000, 1000);
    work(proxy, {.label = browser, .rule = ClientRule::replied}, 100, 50);
    work(proxy, {}, 100, 40);
    work(database, by_proxy, 3000, 500);
    work(database, {.label = hostile}, 200, 100);
    work(database, {}, 50, 10);
    work(hostile, {}, 30, 5);
    work(cache, {.label = cache}, 60, 40);
    for (uint32_t i = 0; i < 14; ++i) work(process(400 + i, "worker"), by_proxy, 10 + i, 5);
    work_for_clients_elsewhere(proxy, database);
    add_asynchronous_work(browser, proxy, database);
    profile_.requests = {{{proxy, profile_.client({.label = browser})}, 20'000},
                         {{database, profile_.client(by_proxy)}, 7'000}};
    return std::move(profile_);
  }

 private:
  LabelId process(uint32_t pid, const char* comm) {
    return profile_.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  FrameId frame(FrameKind kind, const char* name) {
    const uint64_t address = kind == FrameKind::pseudo ? 0 : ++address_;
    return profile_.frame({.kind = kind, .address = address, .function = profile_.string(name)});
  }
  StackId stack(const std::vector<FrameId>& leaf_first) { return profile_.stack(leaf_first); }

  void add(LabelId ran_on, LabelId served, const Client& client, const char* source, StackId stack,
           uint64_t milliseconds) {
    profile_.add({.ran_on = ran_on,
                  .served = served,
                  .source = profile_.string(source),
                  .basis = ran_on == served ? Basis::own : Basis::consumed,
                  .stack = stack,
                  .client = client.label ? profile_.client(client) : 0},
                 {.count = milliseconds, .ns = milliseconds * milli});
  }
  void work(LabelId server, const Client& client, uint64_t user_ms, uint64_t own_ms) {
    add(server, server, client, "user", parse_, user_ms);
    add(server, server, client, "syscall:read", read_, own_ms);
  }

  void work_for_clients_elsewhere(LabelId proxy, LabelId database) {
    for (uint32_t i = 1; i <= 30; ++i) {
      const std::string address = "192.0.2." + std::to_string(i);
      const LabelId client = profile_.label(
          {.kind = LabelKind::remote, .without_pid = true, .comm = address, .reason = address});
      work(proxy, {.label = client, .rule = ClientRule::replied}, 40 - i, i);
      if (i < 4) work(database, {client, {proxy}, ClientRule::woken}, i, 1);
    }
  }

  void add_asynchronous_work(LabelId browser, LabelId proxy, LabelId database) {
    const LabelId ksoftirqd = profile_.label({.kind = LabelKind::process,
                                              .pid = 22,
                                              .start_ns = 1,
                                              .kthread = true,
                                              .comm = "ksoftirqd/1"});
    const LabelId kernel = profile_.label({.kind = LabelKind::kernel});
    add(ksoftirqd, proxy, {.label = browser}, "softirq:NET_RX", packets_, 400);
    add(browser, database, {browser, {proxy}}, "softirq:NET_RX", packets_, 300);
    add(database, database, {browser, {proxy}, ClientRule::asked}, "ipi:flush_tlb", packets_, 20);
    add(proxy, kernel, {}, "softirq:RCU", packets_, 60);
  }

  Profile profile_;
  uint64_t address_ = 0x1000;
  StackId parse_ = 0;
  StackId read_ = 0;
  StackId packets_ = 0;
};

}  // namespace

Profile clients_machine() {
  return ClientsMachine().run();
}

}  // namespace pkprof::test
