// SPDX-License-Identifier: Apache-2.0
#include "perf_beside.h"

#include <cstdlib>
#include <sstream>

namespace pkprof::accuracy {

using live::Argv;

PerfBeside::PerfBeside(double seconds) {
  // Under emulation it takes minutes to say what it has seen. Nothing is judged by it: it is for
  // the page.
  if (live::in_guest() || !std::getenv("PKPROF_ACCURACY_PAGE") ||
      live::find_program("perf").empty())
    return;
  std::ostringstream duration;
  duration << seconds;
  perf_.emplace(Argv{"perf", "record", "-q", "-a", "-g", "-F", "997", "-e", "cpu-clock", "-o",
                     dir_.file("perf.data"), "--", "sleep", duration.str()});
}

// One sample is a line "PID", its frames one a line, indented, and an empty line.
void PerfBeside::read() {
  const live::Finished script =
      live::run_program({"perf", "script", "-i", dir_.file("perf.data"), "-F", "pid,ip,sym"});
  std::istringstream in(script.out);
  int pid = 0;
  bool softirq = false;
  const auto end_sample = [&] {
    if (softirq) ++softirq_[pid];
    softirq = false;
  };
  bool at_start = true;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) {
      end_sample();
      at_start = true;
    } else if (at_start) {
      pid = std::atoi(line.c_str());
      at_start = false;
    } else if (line.find(" handle_softirqs") != std::string::npos ||
               line.find(" __do_softirq") != std::string::npos) {
      softirq = true;
    }
  }
  end_sample();
}

std::optional<double> PerfBeside::softirq_share(const std::set<int>& pids,
                                                const std::set<int>& without) {
  if (!perf_) return {};
  if (softirq_.empty() && perf_->wait() == 0) read();
  uint64_t all = 0;
  uint64_t on = 0;
  for (const auto& [pid, samples] : softirq_) {
    if (without.contains(pid)) continue;
    all += samples;
    if (pids.contains(pid)) on += samples;
  }
  if (all == 0) return {};
  return 100 * static_cast<double>(on) / static_cast<double>(all);
}

}  // namespace pkprof::accuracy
