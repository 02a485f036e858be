// SPDX-License-Identifier: Apache-2.0
// pkprof agent.
#include <cstdio>
#include <memory>

#include "agent/agent.h"
#include "cli/commands.h"
#include "report/clean.h"

namespace pkprof {
namespace {

struct Options {
  std::string config = "/etc/pkprof/agent.toml";
  bool check = false;
  bool once = false;
};

int start_agent(const Options& o) {
  auto config = read_agent_config(o.config);
  if (!config) return complain(config.error().message, exit_usage);
  if (o.check) {
    std::printf("%s: %zu sinks, metrics %s\n", clean(o.config).c_str(), config->sinks.size(),
                config->metrics.address.empty() ? "off" : "on");
    return 0;
  }
  const auto done = run_agent({.config_path = o.config,
                               .config = std::move(*config),
                               .once = o.once,
                               .tell = [](const std::string& text) { complain(text, 0); }});
  return done ? 0 : complain(done.error().message, exit_failure);
}

}  // namespace

void add_agent(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("agent", "Record all the time, for sinks and for Prometheus");
  sub.add("-c,--config", options->config, "What to record and where it goes")
      .type("FILE")
      .show_default();
  sub.add("--check-config", options->check, "Say what is wrong with that file, and end");
  sub.add("--once", options->once, "One interval: end when the sinks have it");
  sub.footer(
      "It ends at SIGTERM or an interrupt (Ctrl-C), and reads its configuration again at "
      "SIGHUP.");
  sub.examples({"pkprof agent --check-config", "pkprof agent --once -c agent.toml"});
  sub.when_used([options, &line] { line.action = [options] { return start_agent(*options); }; });
}

}  // namespace pkprof
