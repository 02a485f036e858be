// SPDX-License-Identifier: Apache-2.0
// What profiling costs: many workloads, each under nothing, under pkprof and under other profilers.
// Measures into a log, and makes a table or a page of documentation from one.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "args/arg_parser.h"
#include "campaign.h"
#include "page.h"
#include "table.h"

namespace pkprof::overhead {
namespace {

struct Options {
  Plan plan;
  std::vector<std::string> workloads;
  std::vector<std::string> variants;
  std::string bin;
  std::string json;
  std::string page;
  std::string table;
  bool list = false;
};

std::atomic<bool> interrupted = false;

void on_signal(int) {
  interrupted = true;
}

// From here on a signal ends the run in order: children are stopped, namespaces removed.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int complain(const std::string& message, int status = 125) {
  std::fprintf(stderr, "overhead: %s\n", message.c_str());
  return status;
}

Result<std::vector<Run>> read_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail_errno("reading " + path);
  auto runs = parse_log(text.str());
  if (!runs) return std::unexpected(runs.error().in(path));
  if (runs->empty()) return fail(path + " has no run in it");
  return runs;
}

int show(const std::string& path, std::string (*text_of)(const std::vector<Run>&)) {
  const auto runs = read_log(path);
  if (!runs) return complain(runs.error().message);
  const std::string text = text_of(*runs);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain("writing the output failed");
  }
  return 0;
}

int list() {
  std::puts("workloads:");
  for (const Workload& w : all_workloads()) {
    std::printf("  %-12s %s: %s\n", w.info.name.c_str(), w.info.title.c_str(), w.info.what.c_str());
  }
  std::puts("variants:");
  for (const Variant& v : all_variants()) {
    std::printf("  %-12s %s\n", v.info.name.c_str(),
                v.info.command.empty() ? "no profiler" : v.info.command.c_str());
  }
  return 0;
}

// Those that were asked for by name, all if none was; an error names one that there is not.
template <typename T>
Result<std::vector<T>> choose(std::vector<T> all, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return all;
  std::vector<T> chosen;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find_if(all, [&](const T& t) { return t.info.name == name; });
    if (found == all.end()) return fail("there is no \"" + name + "\"; --list says what there is");
    chosen.push_back(*found);
  }
  return chosen;
}

Result<> check_programs(const std::string& bin) {
  for (const char* name : {"pkprof", "bare_sampler", "bench_load", "pk_udp", "pk_tcp"}) {
    if (access((bin + "/" + name).c_str(), X_OK) != 0) {
      return fail("no " + bin + "/" + name + "; build first, or say --bin DIR");
    }
  }
  return {};
}

Result<> complete(Options& options) {
  auto workloads = choose(all_workloads(), options.workloads);
  if (!workloads) return std::unexpected(workloads.error());
  auto variants = choose(all_variants(), options.variants);
  if (!variants) return std::unexpected(variants.error());
  options.plan.workloads = std::move(*workloads);
  options.plan.variants = std::move(*variants);
  if (options.bin.empty()) {
    options.bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  }
  if (geteuid() != 0) return fail("only root may sample all CPUs and make network namespaces");
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
    return fail("two CPUs are needed: what talks has one each");
  return check_programs(options.bin);
}

int measure(Options& options) {
  if (auto r = complete(options); !r) return complain(r.error().message, 2);
  std::ofstream file;
  if (!options.json.empty()) {
    file.open(options.json, std::ios::app);
    if (!file) return complain("opening " + options.json + " failed");
  }
  auto dir = TempDir::create();
  if (!dir) return complain(dir.error().message);
  catch_signals();
  Stage stage(options.bin, std::move(*dir));
  std::string log;
  const auto emit = [&](const std::string& line) {
    log += line;
    file << line << std::flush;
  };
  Campaign campaign(options.plan, stage, emit, interrupted);
  if (auto r = campaign.prepare(); !r) {
    return complain(r.error().message, interrupted ? 130 : 125);
  }
  campaign.run();
  const auto runs = parse_log(log);
  if (!runs) return complain(runs.error().message);
  std::fputs(table_text(*runs).c_str(), stdout);
  if (!options.json.empty() && !file) return complain("writing " + options.json + " failed");
  return interrupted ? 130 : 0;
}

int run(int argc, char** argv) {
  ArgParser app(
      "What profiling costs: throughput of workloads under profilers, as ratios to that without.\n"
      "Needs root, two CPUs and a machine with nothing else to do.");
  Options options;
  Plan& plan = options.plan;
  plan.frequencies = {99, 997, 3989};
  app.add("--rounds", plan.rounds, "Rounds: starts of each load").range(1, 10000).show_default();
  app.add("--turns", plan.turns, "Turns of each profiler in a round; medians are over them")
      .range(1, 10000)
      .show_default();
  app.add("--starts", plan.starts, "The same, for loads where it is started for each turn")
      .range(1, 10000)
      .show_default();
  app.add("--seconds", plan.seconds, "Length of a slice").range(0.05, 3600.0).show_default();
  app.add("--lead", plan.lead, "Seconds between a load's start and its first slice")
      .range(0.0, 60.0)
      .show_default();
  app.add("--settle", plan.settle, "Seconds that a profiler samples before its first slice")
      .range(0.0, 60.0)
      .show_default();
  app.add("--workloads", options.workloads, "Only these: udp,nginx").separated_by(',');
  app.add("--frequency", plan.frequencies, "Samples per second and CPU: 99,997,3989")
      .separated_by(',')
      .range(1, 20000);
  app.add("--variants", options.variants, "Only these: bare,pkprof; plain is always there")
      .separated_by(',');
  app.add("--bin", options.bin, "Where pkprof and the workloads are (default: beside this)");
  app.add("--json", options.json, "Append the log to this file, a line for each slice");
  const auto page = app.add("--page", options.page, "Make docs/OVERHEAD.md from such a log");
  app.add("--table", options.table, "Show the table of such a log").excludes(page);
  app.add("--list", options.list, "Name workloads and variants");
  if (const auto end = app.parse(argc, argv)) return *end;
  if (options.list) return list();
  if (!options.page.empty()) return show(options.page, page_text);
  if (!options.table.empty()) return show(options.table, table_text);
  return measure(options);
}

}  // namespace
}  // namespace pkprof::overhead

int main(int argc, char** argv) {
  try {
    return pkprof::overhead::run(argc, argv);
  } catch (const std::exception& e) {
    return pkprof::overhead::complain(e.what());
  }
}
