// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>

#include "workload.h"

namespace pkprof::overhead {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using workload::WorkerStats;

constexpr size_t kMostWorkers = 64;
constexpr auto kLook = 100ms;  // how long a request to stop may go unnoticed

}  // namespace

Result<Progress> Progress::create() {
  Fd memory(memfd_create("progress", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("memory to share with a workload");
  return Progress(std::move(memory));
}

std::string Progress::setting() const {
  return std::string(workload::kProgressVariable) + "=/proc/" + std::to_string(getpid()) + "/fd/" +
         std::to_string(memory_.get());
}

template <typename Member>
Result<double> Progress::sum(Member member) const {
  std::array<WorkerStats, kMostWorkers> workers = {};
  const ssize_t bytes = pread(memory_.get(), workers.data(), sizeof workers, 0);
  if (bytes < 0) return fail_errno("reading what a workload has done");
  double sum = 0;
  for (const WorkerStats& worker : workers) sum += static_cast<double>(worker.*member);
  return sum;
}

Result<double> Progress::operations() const {
  return sum(&WorkerStats::operations);
}

Result<double> Progress::bytes() const {
  return sum(&WorkerStats::bytes);
}

Result<double> received_bytes(pid_t pid, const std::string& device) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/net/dev");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double bytes = 0;
    if (std::getline(words >> std::ws, name, ':') && name == device && words >> bytes) return bytes;
  }
  return fail("process " + std::to_string(pid) + " sees no network device " + device);
}

void Load::pass(double seconds, const std::atomic<bool>& stop) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  for (auto left = end - Clock::now(); left > 0ns && !stop; left = end - Clock::now()) {
    const auto part = std::min<std::chrono::nanoseconds>(left, kLook);
    const timespec time = {0, static_cast<long>(part.count())};
    nanosleep(&time, nullptr);
  }
}

Result<> Load::check() {
  for (testnet::Child& process : processes_) {
    const auto status = process.wait(0ms);
    if (status) return fail("it ended by itself, status " + std::to_string(*status));
  }
  return {};
}

Result<double> Load::measure(double seconds, const std::atomic<bool>& stop) {
  const auto before = meter_();
  if (!before) return before;
  const auto start = Clock::now();
  pass(seconds, stop);
  const auto after = meter_();
  const std::chrono::duration<double> took = Clock::now() - start;
  if (auto well = check(); !well) return std::unexpected(well.error());
  if (!after) return after;
  if (*after <= *before && !stop) return fail("nothing got done");
  return (*after - *before) / took.count();
}

}  // namespace pkprof::overhead
