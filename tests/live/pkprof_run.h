// SPDX-License-Identifier: Apache-2.0
// pkprof as a user runs it: the program, its exit status, what it writes, and its JSON report read
// back. Nothing here links pkprof's own code but the two base headers: what is tested is the
// program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "testnet.h"

namespace pkprof::live {

using testnet::Argv;
using namespace std::chrono_literals;

// What a Result holds; its error becomes an exception, which GoogleTest reports as a failure.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// A directory of our own, gone with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view text);
// Where the program is (in PATH and the sbin directories), or "".
[[nodiscard]] std::string find_program(std::string_view name);
// "prog 17", "map 3", "link 5": the kernel's objects that a process holds.
[[nodiscard]] std::set<std::string> bpf_objects_of(int pid);
// Whether a recording has begun so far that a signal ends it in order.
[[nodiscard]] bool waits_for_signals(int pid);
[[nodiscard]] bool in_guest();  // under emulation: everything takes ten times as long
[[nodiscard]] int last_cpu();
// After so long a program that has not ended hangs. An emulated 6.1 takes minutes to attach to a
// few functions while its CPUs are busy.
[[nodiscard]] std::chrono::milliseconds patience();

// A program that is running, with what it writes kept in files. Killed with the object.
class Running {
 public:
  struct Options {
    std::vector<std::string> env;       // "NAME=value"; "NAME=" sets it empty
    std::string out_path;               // standard output goes there instead
    std::function<void()> before_exec;  // in the child
  };
  explicit Running(const Argv& argv, const Options& options);
  explicit Running(const Argv& argv) : Running(argv, Options{}) {}
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Exit status, or 128 + signal. Throws when the time runs out.
  int wait(std::chrono::milliseconds timeout = patience());
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  TempDir dir_;
  std::string out_path_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;
};

struct Finished {
  int status = 0;
  std::string out;
  std::string err;
};
Finished run_program(const Argv& argv, const Running::Options& options = {});
// The arguments behind "pkprof".
Finished run_pkprof(Argv arguments, const Running::Options& options = {});
[[nodiscard]] Argv pkprof_argv(Argv arguments);

// A party to a flow: a pid, or one of these.
enum Party : int { kKernel = -1, kIdle = -2, kOther = -3, kUnclaimed = -4 };

struct Process {
  int pid = 0;
  std::string comm, exe, cgroup;
  uint64_t user_ns = 0, own_ns = 0, async_ns = 0, stolen_ns = 0;
  std::map<std::string, uint64_t> sources, basis;
};

struct Flow {
  int ran_on = 0;
  int served = 0;
  std::string source;
  uint64_t ns = 0;
};

// Softirqs that the network uses. TIMER is not among them: much else uses that.
[[nodiscard]] bool is_network(std::string_view source);

struct Report {
  std::string text;  // the JSON itself
  uint64_t cpus = 0, duration_ns = 0, frequency_hz = 0, cpu_ns = 0;
  uint64_t samples_taken = 0, samples_lost = 0;
  double watched = 0;  // share of the time
  uint64_t kernel_ns = 0, idle_ns = 0, steal_ns = 0, other_ns = 0;
  std::vector<std::string> degraded;
  std::vector<Process> processes;
  std::map<std::string, uint64_t> unclaimed;  // by reason
  std::vector<Flow> flows;

  [[nodiscard]] static Report parse(const std::string& json);

  [[nodiscard]] uint64_t sum(const std::function<bool(const Flow&)>& wanted) const;
  // Network softirq time: all of it, and what was for these processes.
  [[nodiscard]] uint64_t network_ns() const;
  [[nodiscard]] uint64_t network_ns(const std::set<int>& served) const;
  [[nodiscard]] uint64_t softirq_ns(int served) const;
  [[nodiscard]] uint64_t softirq_on(int ran_on, int served) const;
  // User, own and asynchronous.
  [[nodiscard]] uint64_t charged_to(int pid) const;
  [[nodiscard]] const Process* find(int pid) const;
  [[nodiscard]] std::set<int> pids_of(std::string_view comm) const;
  [[nodiscard]] std::set<int> pids_running(std::string_view program) const;  // by executable
  [[nodiscard]] uint64_t unclaimed_ns(const std::string& reason) const;
  // Samples taken of a time in this report, which those watched stand for.
  [[nodiscard]] uint64_t samples(uint64_t ns) const;
};

// Rule 1: everything, added up, is CPUs x time. A test failure if not.
void expect_adds_up(const Report& report);
// The same, with hardly anything unsampled; called for every report.
void expect_ledger_sums(const Report& report);

// Reads a profile by way of `pkprof report --json`, and checks its sums.
Report read_report(const std::string& file);

// `pkprof record` with these arguments (-o is added), then its report.
struct Recording {
  Finished record;
  Report report;
};
Recording record(const Argv& arguments);

// What `pkprof doctor --json` says of a capability; true for one that it does not name. Asked once,
// or now.
[[nodiscard]] bool capability_works(const std::string& name);
[[nodiscard]] bool capability_works_now(const std::string& name);

}  // namespace pkprof::live

// Skips the test, with the capability's name, where the kernel does not have it.
#define PKPROF_NEEDS(name)                                                                        \
  do {                                                                                            \
    if (!::pkprof::live::capability_works(name)) GTEST_SKIP() << "this kernel lacks: " << (name); \
  } while (false)
