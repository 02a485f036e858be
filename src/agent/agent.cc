// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <malloc.h>
#include <signal.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent/delivery.h"
#include "agent/figures.h"
#include "agent/make_sink.h"
#include "agent/spool.h"
#include "base/notify.h"
#include "model/file.h"
#include "model/pprof/pprof.h"
#include "record/session.h"
#include "serve/figures_server.h"

namespace pkprof {
namespace {

using std::chrono::steady_clock;

constexpr auto patience_at_end = std::chrono::seconds(5);

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id", 64);
  if (!text) return "unknown";
  std::erase_if(*text, [](char c) { return c == '-' || c == '\n'; });
  return *text;
}

std::string host_of(const AgentConfig& config) {
  utsname system{};
  uname(&system);
  return config.host.empty() ? system.nodename : config.host;
}

RecordOptions record_options(const AgentConfig& config, bool once) {
  RecordOptions o;
  o.target.all = true;
  o.frequency_hz = config.frequency_hz;
  o.budget = config.budget;
  o.clients = config.clients ? PK_CLIENTS_WANTED : 0;
  (once ? o.seconds : o.interval) = config.interval;
  constexpr std::array usage_of = {std::pair("lock", PK_USAGE_LOCK),
                                   std::pair("disk", PK_USAGE_DISK), std::pair("net", PK_USAGE_NET),
                                   std::pair("memory", PK_USAGE_MEMORY)};
  for (const std::string& resource : config.resources) {
    const bool all = resource == "all";
    o.waits |= all || resource == "wait";
    for (const auto& [name, bit] : usage_of)
      if (all || resource == name) o.usage |= static_cast<uint32_t>(bit);
  }
  return o;
}

// Symbols are read in threads that end, and a cut is gone when it is sent: what is free is given
// back, not kept for each thread. Measured, after a minute beside a compiler: 32 MiB for 89.
void keep_memory_small() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

// Threads have the mask of whoever began them. None is to be ended by what ends a recording, also
// between two.
void leave_signals_to_the_recording() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

// What one configuration asks for.
class Agent {
 public:
  Agent(const AgentOptions& options, Figures& figures) : options_(options), figures_(figures) {}

  Result<> open() {
    const AgentConfig& config = options_.config;
    std::vector<std::string> names;
    for (const SinkConfig& sink : config.sinks) names.push_back(sink.name);
    if (!names.empty()) {
      auto spool = Spool::open(config.spool, names, config.spool_bytes);
      if (!spool) return std::unexpected(spool.error());
      spool_.emplace(std::move(*spool));
      for (const std::string& directory : spool_->forsaken())
        options_.tell("spool: " + directory + " has cuts for a sink that is not configured");
    }
    for (const SinkConfig& sink : config.sinks)
      deliveries_.push_back(std::make_unique<Delivery>(
          Delivery::Options{.sink = sink.name, .host = host_of(config), .labels = config.labels},
          make_sink(sink), *spool_, options_.tell));
    if (config.metrics.address.empty() || options_.once) return {};
    auto server = FiguresServer::start(config.metrics.address, config.metrics.port,
                                       [this] { return text(); });
    if (!server) return std::unexpected(server.error().in("metrics"));
    server_ = std::move(*server);
    options_.tell("metrics are at http://" + config.metrics.address + ":" +
                  std::to_string(server_->port()) + "/metrics");
    return {};
  }

  void take(const Profile& profile) {
    figures_.add(profile);
    if (deliveries_.empty()) return;
    const auto file = encode_pprof(profile);
    const Result<> kept = file ? spool_->add(profile.meta.start_unix_ns, boot_, *file)
                               : Result<>(std::unexpected(file.error()));
    if (!kept) {
      figures_.count_lost_cut();
      options_.tell("a cut is lost: " + kept.error().message);
    }
    for (const auto& delivery : deliveries_) delivery->wake();
  }

  // False: some sink has not taken all.
  bool finish() {
    const auto until = steady_clock::now() + patience_at_end;
    bool all = true;
    for (const auto& delivery : deliveries_) all = delivery->empty_by(until) && all;
    return all;
  }

 private:
  [[nodiscard]] std::string text() const {
    std::vector<Figures::SinkState> sinks;
    for (const auto& delivery : deliveries_)
      sinks.push_back({delivery->sink(), delivery->figures(), spool_->depth(delivery->sink())});
    return figures_.text(sinks);
  }

  const AgentOptions& options_;
  Figures& figures_;
  const std::string boot_ = boot_id();
  std::optional<Spool> spool_;
  std::vector<std::unique_ptr<Delivery>> deliveries_;
  std::unique_ptr<FiguresServer> server_;  // last: it asks all of the others
};

std::unique_ptr<Figures> figures_for(const AgentConfig& config) {
  return std::make_unique<Figures>(by_from_string(config.metrics.by).value_or(By::container),
                                   config.metrics.series);
}

// One configuration's time. True: another one is to be read.
Result<bool> run_one(const AgentOptions& options, Figures& figures) {
  Agent agent(options, figures);
  if (auto r = agent.open(); !r) return std::unexpected(r.error());
  RecordOptions recording = record_options(options.config, options.once);
  recording.each = [&](const Profile& profile) {
    agent.take(profile);
    return true;
  };
  recording.progress = [ready = false](const Progress&) mutable {
    notify_service_manager(std::exchange(ready, true) ? "WATCHDOG=1" : "READY=1\nWATCHDOG=1");
  };
  auto last = record(recording);
  if (!last) return std::unexpected(last.error());
  if (last->profile.meta.duration_ns) agent.take(last->profile);
  const bool again = last->signal == SIGHUP && !options.once;
  notify_service_manager(again ? "RELOADING=1" : "STOPPING=1");
  const bool all_taken = agent.finish();
  if (options.once && !all_taken)
    return fail("a sink did not take the cut, which waits in " + options.config.spool);
  return again;
}

}  // namespace

Result<> run_agent(AgentOptions options) {
  keep_memory_small();
  leave_signals_to_the_recording();
  auto figures = figures_for(options.config);
  for (;;) {
    const auto again = run_one(options, *figures);
    if (!again) return std::unexpected(again.error());
    if (!*again) return {};
    auto config = read_agent_config(options.config_path);
    if (!config) {
      options.tell("the configuration stays as it was: " + config.error().message);
      continue;
    }
    const MetricsConfig& before = options.config.metrics;
    const bool same_figures =
        config->metrics.by == before.by && config->metrics.series == before.series;
    options.config = std::move(*config);
    if (!same_figures) figures = figures_for(options.config);
  }
}

}  // namespace pkprof
