// SPDX-License-Identifier: Apache-2.0
#include "packets.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>

#include "load.h"
#include "recording.h"
#include "testnet.h"

namespace pkprof::scale {
namespace {

using overhead::Load;
using overhead::Progress;
using testnet::Child;
using testnet::Pair;

constexpr int sender_cpu = 0;
constexpr int receiver_cpu = 1;
constexpr const char* port = "9000";
constexpr double start_s = 0.5;  // until a recording is under way

// How many packets are sent.
struct Rate {
  std::string name;
  bool any = true;
  uint32_t a_second = 0;  // 0: as many as can be
};

std::vector<Rate> all_rates(const LiveOptions& options) {
  std::vector<Rate> rates{{"none", false}};
  for (const uint32_t a_second : options.rates)
    rates.push_back({std::to_string(a_second), true, a_second});
  rates.push_back({"as many as go"});
  return rates;
}

// From one namespace to the other, where one process waits for them and counts.
Result<Load> send_packets(const LiveOptions& options, const Pair& pair, const Rate& rate) {
  const std::string program = options.bin + "/pk_udp";
  auto progress = Progress::create();
  if (!progress) return std::unexpected(progress.error());
  const auto received = std::make_shared<Progress>(std::move(*progress));
  auto receiver =
      Child::spawn({program, "recv", "--port", port},
                   {.ns = &pair.server, .cpu = receiver_cpu, .env = {received->setting()}});
  if (!receiver) return std::unexpected(receiver.error());
  if (auto ready = receiver->wait_for_line("ready"); !ready) return std::unexpected(ready.error());
  std::vector<Child> processes;
  if (rate.any) {
    auto sender = Child::spawn({program, "send", "--to", Pair::kServer4, "--port", port, "--size",
                                "64", "--pps", std::to_string(rate.a_second)},
                               {.ns = &pair.client, .cpu = sender_cpu});
    if (!sender) return std::unexpected(sender.error());
    processes.push_back(std::move(*sender));
  }
  processes.push_back(std::move(*receiver));
  return Load(std::move(processes), [received] { return received->operations(); });
}

double ms(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// What a recording says of packets, and what they cost it.
Json figures_of(const Profile& profile) {
  const Meta& meta = profile.meta;
  uint64_t network_ns = 0;
  uint64_t unclaimed_ns = 0;
  for (const auto& [key, value] : profile.samples()) {
    if (!profile.text(key.source).starts_with("softirq:NET_")) continue;
    network_ns += value.ns;
    if (profile.labels()[key.served].kind == LabelKind::unclaimed) unclaimed_ns += value.ns;
  }
  const auto percent = [](uint64_t part, uint64_t all) {
    return 100 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(all, 1));
  };
  return {{"watched, % of the time", 100 * watched_share(meta)},
          {"printed cost in the kernel, ms", ms(meta.cost_kernel_ns)},
          {"printed cost of the process, ms", ms(meta.cost_user_ns)},
          {"softirqs of the network, ms", ms(network_ns)},
          {"unclaimed, % of these softirqs", percent(unclaimed_ns, network_ns)},
          {"rows", profile.samples().size()},
          {"stacks", profile.stack_count()}};
}

Result<> record_at(const LiveOptions& options, const Pair& pair, const Rate& rate,
                   const std::string& budget, Column& column) {
  auto load = send_packets(options, pair, rate);
  if (!load) return std::unexpected(load.error());
  sleep(2);  // until what starting them left to do is done
  const std::atomic<bool> stop = false;
  std::future<Result<double>> received;
  if (rate.any) {
    // Of the recording alone: while pkprof starts and ends it takes more of the CPUs.
    received = std::async(std::launch::async, [&] {
      Load::pass(start_s, stop);
      return load->measure(options.seconds - start_s, stop);
    });
  }
  const auto recorded = record_once({.bin = options.bin,
                                     .seconds = options.seconds,
                                     .more = {"--budget", budget},
                                     .figures = figures_of},
                                    column);
  const Result<double> packets = rate.any ? received.get() : 0.0;
  if (!recorded) return recorded;
  if (!packets) return std::unexpected(packets.error());
  column.add({{"packets received a second", *packets}});
  return {};
}

}  // namespace

Result<> record_packets(const LiveOptions& options) {
  const auto pair = Pair::create();
  if (!pair) return std::unexpected(pair.error());
  const std::vector<Rate> rates = all_rates(options);
  struct Table {
    std::string budget;  // percent
    std::vector<Column> columns;
  };
  std::vector<Table> tables{{"1", {}}, {"100", {}}};
  for (Table& table : tables)
    for (const Rate& rate : rates) table.columns.push_back({.head = rate.name});
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < rates.size(); ++i)
      for (Table& table : tables)
        if (auto r = record_at(options, *pair, rates[i], table.budget, table.columns[i]); !r)
          return r;
  for (const Table& table : tables)
    print_table("packets a second, budget of " + table.budget + " %", table.columns);
  return {};
}

}  // namespace pkprof::scale
