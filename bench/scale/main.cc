// SPDX-License-Identifier: Apache-2.0
// How cost grows: with processes, sockets and packets by recordings of such a machine, with stacks
// and hours by a simulation over the same code, with CPUs by computing.
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "args/arg_parser.h"
#include "cpus.h"
#include "live.h"
#include "packets.h"
#include "simulation.h"

namespace pkprof::scale {
namespace {

struct Options {
  LiveOptions live;
  uint32_t hour = 3600;
  uint32_t unlimited = 600;
  uint64_t frequency_hz = 997;
  std::vector<std::string> parts;
};

Result<> simulate_stacks() {
  Scenario s;
  s.name = "100,000 distinct stacks in 20 seconds";
  s.seconds = 20;
  s.steady_stacks = 100;
  s.new_stacks = 5000;
  s.processes = 0;
  s.show = {20};
  return simulate(s);
}

Result<> simulate_hour(uint32_t seconds, bool bounded) {
  Scenario s;
  s.name = "2,000 steady stacks; each second 50 new ones and 200 processes";
  if (!bounded) s.name += "; without limits";
  s.seconds = seconds;
  s.bounded = bounded;
  for (const uint32_t at : {60U, 300U, 600U, 1800U, 3600U})
    if (at <= seconds) s.show.push_back(at);
  return simulate(s);
}

Result<> run_part(const std::string& part, const Options& options) {
  if (part == "processes") return record_processes(options.live);
  if (part == "sockets") return record_sockets(options.live);
  if (part == "packets") return record_packets(options.live);
  if (part == "stacks") return simulate_stacks();
  if (part == "hour") return simulate_hour(options.hour, true);
  if (part == "unlimited") return simulate_hour(options.unlimited, false);
  print_cpus(options.frequency_hz);
  return {};
}

int run(int argc, char** argv) {
  const std::vector<std::string> all{"processes", "sockets",   "packets", "stacks",
                                     "hour",      "unlimited", "cpus"};
  Options options;
  options.parts = all;
  ArgParser app(
      "How the cost of a recording grows. Prints the tables of docs/SCALE.md.\n"
      "Needs root, and a machine with nothing else to do.");
  app.add("--parts", options.parts,
          "Only these: processes,sockets,packets,stacks,hour,unlimited,cpus")
      .separated_by(',')
      .one_of(all);
  app.add("--processes", options.live.processes, "Processes that sleep").positive().show_default();
  app.add("--sockets", options.live.sockets, "Sockets that wait").positive().show_default();
  app.add("--packets", options.live.packets, "Packets a second to them").show_default();
  app.add("--rates", options.live.rates, "Packets a second between two network namespaces")
      .separated_by(',')
      .positive()
      .show_default();
  app.add("--rounds", options.live.rounds, "Recordings of each kind").range(1, 1000).show_default();
  app.add("--seconds", options.live.seconds, "Length of a recording").range(1, 600).show_default();
  app.add("--hour", options.hour, "Seconds of the long recording").positive().show_default();
  app.add("--unlimited", options.unlimited, "Seconds of one without limits")
      .positive()
      .show_default();
  if (const auto end = app.parse(argc, argv)) return *end;
  options.live.bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  utsname machine{};
  uname(&machine);
  std::printf("Linux %s, %ld CPUs\n\n", machine.release, sysconf(_SC_NPROCESSORS_ONLN));
  for (const std::string& part : options.parts) {
    if (auto r = run_part(part, options); !r) {
      std::fprintf(stderr, "scale: %s: %s\n", part.c_str(), r.error().message.c_str());
      return 125;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace pkprof::scale

int main(int argc, char** argv) {
  try {
    return pkprof::scale::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "scale: %s\n", e.what());
    return 125;
  }
}
