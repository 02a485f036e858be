// SPDX-License-Identifier: Apache-2.0
// A scenario: workloads in namespaces, a bystander that is interrupted on their behalf, and a
// recording that goes on until it has seen enough to say something about a half of a percent.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "pkprof_run.h"

namespace pkprof::live {

// Programs that run beside pkprof; they end with the object, the last started first.
class Stage {
 public:
  Stage() = default;
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Starts a workload, or a program of the system, and waits for its line "ready" (unless told
  // otherwise). Its pid.
  int start(const testnet::Namespace* ns, Argv argv, int cpu = -1, bool wait_ready = true);
  // The bystander: burns CPU where the packets are processed.
  int start_hog(int cpu);
  void stop(int pid);
  // Stops two workloads: how often one did it over how often the other did, in the same time. By
  // their own results, which say so under `key`. 0 in guests, where they may take long to end.
  [[nodiscard]] double ratio(int one, int other, const char* key = "done");
  [[nodiscard]] testnet::Child& child(int pid);

 private:
  std::deque<testnet::Child> children_;
};

// Sets a sysctl and sets it back, also when the test fails.
class Sysctl {
 public:
  Sysctl(std::string path, const char* value);
  ~Sysctl();
  Sysctl(const Sysctl&) = delete;
  Sysctl& operator=(const Sysctl&) = delete;

 private:
  std::string path_;
  std::string old_;
};

// A cgroup of our own, gone with the object.
class Cgroup {
 public:
  Cgroup();
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  void add(int pid) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string name() const;  // below the mount

 private:
  std::string path_;
};

// Suites that run side by side take turns, a test at a time: each would be the other's noise.
// Tests that are not about time need no turn to themselves; tests/live/beside names them.
class Turn {
 public:
  enum class Kind { alone, beside_others };
  explicit Turn(Kind kind = Kind::alone);

 private:
  Fd lock_;
};

// A prefork server and its workers, once there are as many as `count`.
[[nodiscard]] std::set<int> with_children(int pid, size_t count);

struct Observe {
  double seconds = 1.2;
  int frequency_hz = 1997;
  uint64_t min_samples = 400;
  const char* budget = "100";  // hooks on throughout: what they say, from the fewest samples
  double most_seconds = 10;    // a recording is made longer until it has the samples, up to this
  // What must be seen; default: network softirq time.
  std::function<uint64_t(const Report&)> counted;
};

// Records all of the machine. Fails the test when `counted` stays under the minimum. What was for
// processes in network namespaces of someone else's is taken out of the report's flows.
[[nodiscard]] Report observe(const Observe& how = {});

// Of some asynchronous time, in percent.
struct Shares {
  double ends = 0;       // for the processes that it is for
  double bystander = 0;  // for the bystander
  double unclaimed = 0;
  double kernel = 0;  // for the kernel itself: pkprof's own hooks
};
[[nodiscard]] Shares shares_of(const Report& report, const std::set<int>& ends, int bystander,
                               const std::function<bool(const Flow&)>& counts);
[[nodiscard]] Shares network_shares(const Report& report, const std::set<int>& ends, int bystander);
// The same of what was received on the bystander's CPU: NET_RX that ran on anyone but the processes
// pinned to another one. (A flow does not say on which CPU it was; whoever else the machine runs
// there is a bystander, too.)
[[nodiscard]] Shares received_elsewhere(const Report& report, const std::set<int>& ends,
                                        int bystander, const std::set<int>& pinned);
[[nodiscard]] bool is_received_elsewhere(const Flow& flow, const std::set<int>& pinned);

// The flows of asynchronous work, largest first: what a failing test shows.
[[nodiscard]] std::string describe(const Report& report);

// What a bystander may be charged of work that is not its own, in percent.
[[nodiscard]] double bystander_limit();

void expect_shares(const Report& report, const Shares& shares, double ends_at_least,
                   double unclaimed_at_most, double bystander_at_most = bystander_limit());

// Two namespaces, a veth pair between them, packets steered onto the last CPU, where a bystander
// burns CPU.
class PairTest : public testing::Test {
 protected:
  void SetUp() override;
  // A receiver or server in the server's namespace, a sender or client in the client's: on the
  // first CPU, so that the last has only the packets and the bystander.
  int serve(Argv argv);
  int talk(Argv argv);

  Turn turn_;
  Stage stage_;
  std::optional<testnet::Pair> pair_;
  int hog_ = 0;
};

// How many interrupts of this kind all CPUs have had: a name of /proc/interrupts, such as "TLB".
[[nodiscard]] uint64_t interrupts_had(std::string_view kind);

// Whether this is a guest of a hypervisor in software, as the kernel's log says: what entering an
// interrupt takes there the guest cannot see.
[[nodiscard]] bool is_below_pvm();

// Root, two CPUs, and a kernel that pkprof can record on; else the test is skipped, saying which.
void skip_unless_able();

}  // namespace pkprof::live
