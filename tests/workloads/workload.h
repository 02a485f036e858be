// SPDX-License-Identifier: Apache-2.0
// What every workload program needs: an end that always comes, a CPU to stay on, worker processes,
// and one line of JSON at the end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "args/arg_parser.h"

namespace pkprof::workload {

using pkprof::ArgParser;

// The body of main(): what `run` throws becomes a message and status 1.
int guarded(int (*run)(int, char**), int argc, char** argv) noexcept;

// Options common to all programs.
struct Common {
  double seconds = 0;  // 0: until SIGTERM or SIGINT
  int cpu = -1;        // -1: anywhere

  void add_to(ArgParser parser);
};

// Pins to the CPU, and arms the alarm that ends the run. Exits with a message if that fails.
void begin(const Common& common);

// Set by SIGTERM, SIGINT and the alarm. From then on SIGALRM comes every 20 ms, so that a system
// call entered just after the flag was looked at is interrupted too.
[[nodiscard]] bool stopped();

// Prints "ready" on a line of its own: from here on the server can be talked to.
void say_ready();

// Prints the result as one line of JSON, with the CPU times of this process (and of the worker
// processes it has waited for) added as user_ns, system_ns.
void print_result(nlohmann::ordered_json result);

// Ends the program: "pk_x: WHAT: reason of errno", status 1.
[[noreturn]] void die(const std::string& what, bool with_errno = true);

[[nodiscard]] uint64_t now_ns();  // monotonic

// Sleeps until the monotonic time given, or until stopped.
void sleep_until_ns(uint64_t when);

// Burns `us` microseconds of CPU time of this thread in user space.
void burn_us(uint64_t us);
// The same; returns what it took of the thread's CPU time, ns.
uint64_t burn_ns(uint64_t us);

// What a worker process counts, as it goes; in memory shared with the first process, and with
// whoever wants to watch: if kProgressVariable names a file, that is the memory, an array of these.
inline constexpr const char* kProgressVariable = "PK_PROGRESS";
struct WorkerStats {
  pid_t pid;
  uint64_t operations;
  uint64_t bytes;
  uint64_t dropped;
};

// Runs `work` in `count` child processes (0: in this one) until they return; forwards the end of
// the run to them. The span is valid to the end of the program.
std::span<WorkerStats> run_workers(int count, const std::function<void(int, WorkerStats&)>& work);

// The workers as an array of objects for the result.
[[nodiscard]] nlohmann::ordered_json to_json(std::span<const WorkerStats> workers);

}  // namespace pkprof::workload
