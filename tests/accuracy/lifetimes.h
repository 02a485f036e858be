// SPDX-License-Identifier: Apache-2.0
// How long each thread of the machine lived, as the kernel says when one exits (taskstats).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof::accuracy {

class Lifetimes {
 public:
  struct Thread {
    pid_t tid = 0;
    uint64_t ns = 0;      // from the clone that made it to its exit
    uint64_t cpu_ns = 0;  // of these on a CPU, by the scheduler's clock; 0: not counted
  };

  // Listens from now on. An error where the kernel does not tell.
  [[nodiscard]] static Result<std::unique_ptr<Lifetimes>> listen();
  ~Lifetimes();
  Lifetimes(const Lifetimes&) = delete;
  Lifetimes& operator=(const Lifetimes&) = delete;

  // Threads that have exited, by process. Waits until the leader's exit is among them.
  [[nodiscard]] std::vector<Thread> of(pid_t process);
  [[nodiscard]] bool has_lost();  // some of them were not told

 private:
  explicit Lifetimes(Fd socket);
  void read_until_stopped(const std::stop_token& stop);

  Fd socket_;
  std::mutex mutex_;
  std::map<pid_t, std::vector<Thread>> threads_;
  bool has_lost_ = false;
  std::jthread reader_;
};

}  // namespace pkprof::accuracy
