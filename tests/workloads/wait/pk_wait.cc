// SPDX-License-Identifier: Apache-2.0
// Waits of a known kind and length, for a known process. Each mode ends by itself, and prints one
// object: "pid" waited, "others" are whom it waited for, "waited_ns" is how long all of its threads
// did together, "delay_ns" how long the first was ready without a CPU, and "bystander" does the
// same beside it.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "wait/wait.h"

namespace {

using namespace pkprof::wait;

struct Mode {
  std::string_view name;
  Said (*run)(const Arguments&);
  size_t arguments = 0;  // the last of them is the bystander's
  bool has_bystander = true;
};

constexpr std::array modes = {
    Mode{"sleep", sleep_scenario},
    Mode{"hogs", hogs_scenario},
    Mode{"children", children_scenario},
    Mode{.name = "threads", .run = threads_scenario, .has_bystander = false},
    Mode{.name = "short-threads", .run = short_threads_scenario, .has_bystander = false},
    Mode{"mutex", mutex_scenario},
    Mode{"rwlock", rwlock_scenario},
    Mode{"inode", inode_scenario},
    Mode{"condition", condition_scenario},
    Mode{"eventfd", eventfd_scenario},
    Mode{"pipe", pipe_scenario},
    Mode{"tcp", tcp_scenario},
    Mode{"udp", udp_scenario},
    Mode{"disk", disk_scenario, 2},
    Mode{"fault", fault_scenario, 2},
    Mode{"memory", memory_scenario, 2},
};

int run(const Mode& mode, Arguments arguments) {
  pid_t bystander = 0;
  if (mode.has_bystander)
    bystander = in_child([&] {
      become_bystander();
      if (!arguments.empty()) arguments.front() = arguments.back();
      while (true) (void)mode.run(arguments);
    });
  const Said said = mode.run(arguments);
  if (bystander) {
    kill(bystander, SIGKILL);  // its children go with it
    waitpid(bystander, nullptr, 0);
  }
  const nlohmann::json result = {
      {"pid", getpid()},         {"others", said.others},      {"waited_ns", said.waited_ns},
      {"took_ns", said.took_ns}, {"delay_ns", run_delay_ns()}, {"bystander", bystander}};
  std::puts(result.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + std::min(argc, 2), argv + argc);
  const auto* const mode = std::ranges::find(modes, argc > 1 ? argv[1] : "", &Mode::name);
  // The kernel has timers wait for others, also for the sampling clock, which would then never meet
  // what a timer begins.
  prctl(PR_SET_TIMERSLACK, 1);
  if (mode != modes.end() && mode->arguments == arguments.size()) return run(*mode, arguments);
  std::string names;
  for (const Mode& one : modes) names += (names.empty() ? "" : "|") + std::string(one.name);
  std::fprintf(stderr, "usage: pk_wait %s [OWN OTHER]\n", names.c_str());
  return 2;
}
