// SPDX-License-Identifier: Apache-2.0
// Programs that a test runs: to their end, or beside it, on a chosen CPU and in a namespace of the
// network's. They die with the test (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof::testnet {

class Namespace;

using Argv = std::vector<std::string>;

// Runs a program to its end and returns its standard output. An exit status other than 0 is an
// error that quotes what the program wrote on standard error.
[[nodiscard]] Result<std::string> run_command(const Argv& argv);

// Path of a program built next to the running one ("pk_udp"), or in $PKPROF_BIN_DIR if that is set.
[[nodiscard]] std::string sibling(std::string_view program);

struct SpawnOptions {
  const Namespace* ns = nullptr;  // null: where we are
  int cpu = -1;                   // pin to this CPU; -1: do not
  std::vector<std::string> env;   // "NAME=value", added to ours
};

// A child process whose standard output we keep. Destroyed: SIGTERM, then SIGKILL.
class Child {
 public:
  [[nodiscard]] static Result<Child> spawn(const Argv& argv, const SpawnOptions& options = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits for a line of output that is exactly `line`; the servers among the workloads print
  // "ready" once they can be talked to.
  [[nodiscard]] Result<> wait_for_line(
      std::string_view line, std::chrono::milliseconds timeout = std::chrono::seconds(10));
  // Waits for the end. The exit status, or 128 + signal. The child stays if the time runs out.
  [[nodiscard]] Result<int> wait(std::chrono::milliseconds timeout);
  // SIGTERM, wait, SIGKILL if it does not go. Returns all of its output; an error if it did not
  // end with status 0.
  [[nodiscard]] Result<std::string> stop();
  // What was read so far; all of it once wait() or stop() has returned.
  [[nodiscard]] const std::string& output() const { return output_; }
  // The last line of the output: where the workloads put their result, as one JSON object.
  [[nodiscard]] std::string last_line() const;

 private:
  Child(pid_t pid, Fd out) : pid_(pid), out_(std::move(out)) {}
  bool read_some(std::chrono::milliseconds timeout);  // false: end of file or time is up
  void kill_and_reap() noexcept;

  pid_t pid_ = -1;  // -1: moved from
  bool reaped_ = false;
  int status_ = 0;
  Fd out_;
  std::string output_;
};

}  // namespace pkprof::testnet
