// SPDX-License-Identifier: Apache-2.0
// What Prometheus is told: CPU time by whom it was for, since the agent began, and how the agent
// does. In the text format, by its conventions: seconds and bytes, "_total" for what only grows.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/delivery.h"
#include "agent/spool.h"
#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// A value for a label, escaped: what a container is called may be anything.
[[nodiscard]] std::string escape_for_figures(std::string_view value);

class Figures {
 public:
  // `series`: groups that have figures of their own, the first that are met. The others are
  // together "other", and counted.
  Figures(By by, uint64_t series) : by_(by), series_(series) {}

  void add(const Profile& profile);
  void count_lost_cut();

  struct SinkState {
    std::string name;
    Delivery::Figures sent;
    Spool::Depth waiting;
  };
  [[nodiscard]] std::string text(const std::vector<SinkState>& sinks) const;

 private:
  struct Group {
    uint64_t user_ns = 0;
    uint64_t kernel_ns = 0;
    uint64_t async_ns = 0;
    uint64_t stolen_ns = 0;
  };
  Group& group_of(const std::string& name);

  const By by_;
  const uint64_t series_;
  mutable std::mutex mutex_;
  std::map<std::string, Group> groups_;
  std::set<std::string> without_series_;
  std::map<std::string, uint64_t> others_;     // "idle", "kernel", "steal", "unclaimed"
  std::map<std::string, uint64_t> unclaimed_;  // by reason
  std::map<std::string, uint64_t> sources_;    // of all groups; so many as they may be, too
  std::map<std::string, uint64_t> counters_;
  uint64_t cpu_ns_ = 0;
  uint64_t recorded_ns_ = 0;
  uint64_t watched_ns_ = 0;
  uint64_t cost_ns_ = 0;
  uint64_t samples_ = 0;
  uint64_t samples_lost_ = 0;
  uint64_t cuts_ = 0;
  uint64_t lost_cuts_ = 0;
  double last_cut_unix_ = 0;
};

}  // namespace pkprof
