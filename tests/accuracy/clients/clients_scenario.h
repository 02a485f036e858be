// SPDX-License-Identifier: Apache-2.0
// Servers' time by their clients, against what the clients asked for: two clients at a known ratio,
// a third that is connected and idle, a fourth that asks another server.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "scenario.h"

namespace pkprof::accuracy {

using live::Argv;

inline constexpr int server_cpu = 1;
inline constexpr int client_cpu = 0;

struct ClientLimits {
  double known = 97;       // percent of the servers' busy time that is some client's
  double ratio = 10;       // percent that the ratio may be off
  double bystander = 0.5;  // percent of it
  // Known is of the server's code alone, not of what the kernel does for it elsewhere: its timers.
  bool code_alone = false;
};
inline constexpr ClientLimits pools = {.known = 93, .ratio = 15, .bystander = 1};
// Runtimes that move work between threads by themselves.
inline constexpr ClientLimits runtimes = {.known = 85, .ratio = 15, .bystander = 1};
// Go's monitor has itself woken every 20 us. On a virtual machine the interrupts for that take 8 %
// of a CPU, a fifth of what this server does, and they are its own.
inline constexpr ClientLimits go_runtime = {
    .known = 85, .ratio = 15, .bystander = 1, .code_alone = true};

// What servers did: by client, and what of it is nobody's. Seconds.
struct Charged {
  std::map<int, double> clients;  // by pid; 0: clients that are not processes
  std::map<int, double> user;     // the same, of user code alone
  double itself = 0;
  double itself_async = 0;  // part of it

  [[nodiscard]] double of(int pid) const;
  [[nodiscard]] double all() const;
};

class ClientsTest : public ::testing::Test {
 protected:
  // A bystander computes on each CPU: on a virtual machine a clock that is due on an idle
  // CPU ticks late, and of work that lasts no longer than that it tells too little. Nobody waits
  // for it, or messages would come together.
  void SetUp() override;

  // A program of the system's that serves; not waited for.
  int serve(std::string_view program, const Argv& arguments, int cpu = server_cpu);
  // pk_answer, which serves in this way.
  int answer(const Argv& how);
  // pk_take, which has no answers.
  int take(const Argv& how);
  int ask(const Argv& where, const std::string& rate, const std::string& cost_us);
  // Connected, and asks once in a long time.
  int stay_idle(const Argv& where) { return ask(where, "0.001", "10"); }
  // A file that a client or a server keeps what it knows in: see workload::Truth.
  std::string truth_file();

  // Records for some seconds. Who knows the truth says it at the begin and at the end. The servers
  // are these, or all of that name.
  Charged record(const std::set<int>& servers, const std::string& comm = "");
  // What it was for one over what it was for the other, in between.
  [[nodiscard]] double truth(int one, int other) const;

  // `truth`: what the server burned for one over what it burned for the other. What the kernel does
  // for a message is partly its receiver's, so the ratio is of user code.
  static void expect(Charged charged, int one, int other, double truth,
                     const std::set<int>& bystanders, const ClientLimits& limits = {});
  // Two clients of pk_answer at 3:1 in equal requests, then, at that rate each, at 1:10 in what
  // they cost.
  void expect_two(const Argv& where, const std::set<int>& servers, const ClientLimits& limits = {},
                  const std::string& rate = "600");
  // Two clients at 3:1 in equal requests, by what they had answered. `ask` starts one that asks so
  // many times a second and keeps the number of its answers in a file.
  using Ask = std::function<int(const std::string& rate, const std::string& truth)>;
  void expect_equal(const Ask& ask, const std::set<int>& servers, const ClientLimits& limits = {},
                    double rate = 600) {
    expect_equal(ask, [&servers] { return servers; }, limits, rate);
  }
  // Of servers whose processes are there once their clients are.
  using Servers = std::function<std::set<int>()>;
  void expect_equal(const Ask& ask, const Servers& servers, const ClientLimits& limits = {},
                    double rate = 600);
  // The same of pk_ask.
  Ask text(const Argv& where);

  // For pk_ask: a request for a page of whoever is at that port, and how long its answer is.
  static Argv get(const std::string& port);
  // What somebody at that port says to this, once it is there.
  static std::string talk(const std::string& port, const std::string& text);

  live::TempDir dir_;
  live::Stage stage_;

 private:
  int start(const std::string& server, const Argv& how);

  int truths_ = 0;
};

// A cluster of PostgreSQL's in a directory of its own, as the user postgres, at a Unix socket
// there.
class Postgres {
 public:
  // What to start with setpriv, as that user.
  static Argv as_postgres(Argv argv);
  static bool is_here();

  // Once it answers. Its processes are the postmaster and its children.
  Postgres(live::Stage& stage, const live::TempDir& dir);
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  int pid_ = 0;
};

}  // namespace pkprof::accuracy
