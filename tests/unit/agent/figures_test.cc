// SPDX-License-Identifier: Apache-2.0
// What Prometheus is told.
#include "agent/figures.h"

#include <gtest/gtest.h>

#include <sstream>

namespace pkprof {
namespace {

constexpr uint64_t sec = 1'000'000'000;

// Two CPUs for 5 s: 3 s of a program's own, 1 s of softirqs for it while another was on the CPU.
Profile some_profile(const std::string& comm = "nginx", uint32_t pid = 7) {
  Profile profile;
  profile.meta = {.cpus = 2, .duration_ns = 5 * sec};
  profile.meta.samples_taken = 10;
  profile.meta.cost_kernel_ns = sec / 4;
  profile.meta.unwatched_ns = 2 * sec;
  profile.meta.counters["kernel stacks lost"] = 3;
  const auto process = [&](const std::string& name, uint32_t number) {
    return profile.label(
        {.kind = LabelKind::process, .pid = number, .start_ns = number, .comm = name});
  };
  const LabelId own = process(comm, pid), other = process("batch", 8);
  const LabelId idle = profile.label({.kind = LabelKind::idle});
  const auto add = [&](LabelId ran_on, LabelId served, const char* source, uint64_t ns) {
    profile.add({.ran_on = ran_on, .served = served, .source = profile.string(source)},
                {.count = 1, .ns = ns});
  };
  add(own, own, "user", 2 * sec);
  add(own, own, "syscall:read", sec);
  add(other, own, "softirq:NET_RX", sec);
  add(idle, idle, "idle", 5 * sec);
  return profile;
}

std::map<std::string, std::string> lines_of(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#')) {
      const size_t space = line.rfind(' ');
      EXPECT_TRUE(lines.emplace(line.substr(0, space), line.substr(space + 1)).second) << line;
    }
  return lines;
}

TEST(AgentFigures, AddUp) {
  Figures figures(By::comm, 100);
  figures.add(some_profile());
  figures.add(some_profile());
  auto lines = lines_of(figures.text({}));
  EXPECT_EQ(lines["pkprof_cpu_seconds_total{comm=\"nginx\",kind=\"user\"}"], "4.000000000");
  EXPECT_EQ(lines["pkprof_cpu_seconds_total{comm=\"nginx\",kind=\"kernel\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_cpu_seconds_total{comm=\"nginx\",kind=\"async\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_stolen_cpu_seconds_total{comm=\"batch\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_other_cpu_seconds_total{kind=\"idle\"}"], "10.000000000");
  EXPECT_EQ(lines["pkprof_other_cpu_seconds_total{kind=\"unclaimed\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_unclaimed_cpu_seconds_total{reason=\"unsampled\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_source_cpu_seconds_total{source=\"user\"}"], "4.000000000");
  EXPECT_EQ(lines["pkprof_source_cpu_seconds_total{source=\"softirq:NET_RX\"}"], "2.000000000");
  EXPECT_EQ(lines["pkprof_all_cpu_seconds_total"], "20.000000000");
  EXPECT_EQ(lines["pkprof_watched_seconds_total"], "6.000000000");
  EXPECT_EQ(lines["pkprof_cost_cpu_seconds_total"], "0.500000000");
  EXPECT_EQ(lines["pkprof_samples_total"], "20");
  EXPECT_EQ(lines["pkprof_losses_total{what=\"kernel stacks lost\"}"], "6");
  EXPECT_EQ(lines["pkprof_cuts_total"], "2");
}

// The ledger sums: of what has no series of its own, too.
TEST(AgentFigures, HaveNoMoreSeriesThanAsked) {
  Figures figures(By::comm, 2);
  for (uint32_t i = 0; i < 50; ++i) figures.add(some_profile("job" + std::to_string(i), 100 + i));
  const std::string text = figures.text({});
  auto lines = lines_of(text);
  EXPECT_EQ(lines["pkprof_groups_without_series"], "49");
  double all = 0;
  size_t series = 0;
  for (const auto& [name, value] : lines) {
    const bool of_group = name.starts_with("pkprof_cpu_seconds_total");
    series += of_group;
    if (of_group || name.starts_with("pkprof_other_cpu")) all += std::stod(value);
  }
  EXPECT_EQ(series, 9) << "two groups and the rest, three kinds each";
  EXPECT_DOUBLE_EQ(all, std::stod(lines["pkprof_all_cpu_seconds_total"]));
}

TEST(AgentFigures, SurviveHostileNames) {
  EXPECT_EQ(escape_for_figures("a\"b\\c\nd\x1b[2J"), "a\\\"b\\\\c\\nd?[2J");
  Figures figures(By::comm, 10);
  figures.add(some_profile("x\"} 1\npkprof_fake 2"));
  for (const auto& [name, value] : lines_of(figures.text({})))
    EXPECT_FALSE(name.starts_with("pkprof_fake")) << name;
}

TEST(AgentFigures, TellOfSinks) {
  Figures figures(By::comm, 10);
  figures.count_lost_cut();
  auto lines = lines_of(figures.text({{"store",
                                       {.sent = 5, .errors = 2, .last_sent_unix = 77},
                                       {.cuts = 3, .bytes = 900, .dropped = 1}}}));
  EXPECT_EQ(lines["pkprof_cuts_lost_total"], "1");
  EXPECT_EQ(lines["pkprof_sink_cuts_sent_total{sink=\"store\"}"], "5");
  EXPECT_EQ(lines["pkprof_sink_errors_total{sink=\"store\"}"], "2");
  EXPECT_EQ(lines["pkprof_sink_cuts_dropped_total{sink=\"store\"}"], "1");
  EXPECT_EQ(lines["pkprof_sink_waiting_cuts{sink=\"store\"}"], "3");
  EXPECT_EQ(lines["pkprof_sink_waiting_bytes{sink=\"store\"}"], "900");
  EXPECT_EQ(lines["pkprof_sink_last_sent_timestamp_seconds{sink=\"store\"}"], "77");
}

}  // namespace
}  // namespace pkprof
