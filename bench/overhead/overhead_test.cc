// SPDX-License-Identifier: Apache-2.0
// What is made of a log: slices find the plain ones beside them, medians are taken over turns, and
// the page says what the log says. The logs here are made up, to have known answers.
#include <gtest/gtest.h>

#include <cmath>

#include "log.h"
#include "page.h"
#include "summary.h"
#include "table.h"
#include "targets.h"

namespace pkprof::overhead {
namespace {

Slice slice(const char* variant, int round, double value, int hz = 997) {
  return {.workload = "udp", .hz = hz, .variant = variant, .round = round, .value = value};
}

Run run_of(std::vector<Slice> slices) {
  Run run;
  run.info.date = "2026-01-01";
  run.info.kernel = "6.1";
  run.info.workloads = {{"udp", "UDP flood", "packets/s", "a flood"}};
  run.info.variants = {{kPlain, ""}, {"bare", "bare_sampler HZ"}, {"pkprof", "pkprof record"}};
  run.slices = std::move(slices);
  return run;
}

std::string log_of(const Run& run) {
  std::string text = to_line(run.info);
  for (const Skip& s : run.skipped) text += to_line(s);
  for (const Slice& s : run.slices) text += to_line(s);
  for (const Failure& f : run.failures) text += to_line(f);
  return text;
}

TEST(Quantile, IsLinearBetweenValues) {
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4, 5}, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.75), 7);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Summary, ComparesWithTheMeanOfThePlainSlicesBeforeAndAfter) {
  const Summary summary({run_of({slice(kPlain, 1, 100), slice("bare", 1, 110),
                                 slice("pkprof", 1, 120), slice(kPlain, 1, 140)})});
  EXPECT_NEAR(summary.ratio("udp", 997, "bare")->median, 110.0 / 120, 1e-12);
  EXPECT_NEAR(summary.ratio("udp", 997, "pkprof")->median, 1, 1e-12);
  EXPECT_EQ(summary.ratio("udp", 997, "bare")->turns, 1u);
  EXPECT_FALSE(summary.ratio("udp", 99, "bare"));
  EXPECT_FALSE(summary.ratio("tcp", 997, "bare"));
  EXPECT_EQ(summary.frequencies(), std::set<int>{997});
}

TEST(Summary, ARunThatWasCutShortIsComparedWithWhatThereIs) {
  const Summary summary({run_of({slice(kPlain, 1, 100), slice("bare", 1, 90)})});
  EXPECT_NEAR(summary.ratio("udp", 997, "bare")->median, 0.9, 1e-12);
  EXPECT_FALSE(Summary({run_of({slice("bare", 1, 90)})}).ratio("udp", 997, "bare"));
}

TEST(Summary, RunsAreNotComparedWithEachOther) {
  const Summary summary({run_of({slice(kPlain, 1, 100), slice("bare", 1, 90)}),
                         run_of({slice(kPlain, 1, 1000), slice("bare", 1, 800)})});
  const auto spread = summary.ratio("udp", 997, "bare");
  EXPECT_EQ(spread->turns, 2u);
  EXPECT_NEAR(spread->median, 0.85, 1e-12);
}

TEST(Summary, LoadsAreNotComparedWithEachOther) {
  const Summary summary(
      {run_of({slice(kPlain, 1, 100), slice("bare", 1, 90), slice(kPlain, 2, 200),
               slice("bare", 2, 180), slice(kPlain, 2, 300, 99), slice(kPlain, 3, 400)})});
  const auto spread = summary.ratio("udp", 997, "bare");
  EXPECT_EQ(spread->turns, 2u);
  EXPECT_NEAR(spread->low, 0.9, 1e-12);
  EXPECT_NEAR(spread->high, 0.9, 1e-12);
  EXPECT_FALSE(summary.ratio("udp", 997, kPlain));
}

TEST(Summary, NoiseIsPlainAgainstItsNeighbours) {
  const Summary summary(
      {run_of({slice(kPlain, 1, 100), slice(kPlain, 1, 99), slice(kPlain, 1, 120)})});
  const auto noise = summary.ratio("udp", 997, kPlain);
  EXPECT_EQ(noise->turns, 1u);
  EXPECT_NEAR(noise->median, 0.9, 1e-12);
  EXPECT_NEAR(summary.plain("udp")->median, 100, 1e-12);
}

// Turns in which the machine was slow are slow for both: the difference is not.
TEST(Summary, DifferencesAreTakenTurnByTurn) {
  std::vector<Slice> slices;
  for (int round = 1; round <= 9; ++round) {
    const double drift = round % 2 ? 0 : 0.2;
    slices.push_back(slice(kPlain, round, 100));
    slices.push_back(slice("bare", round, 100 * (0.98 - drift)));
    slices.push_back(slice("pkprof", round, 100 * (0.97 - drift) - 0.1 * round));
  }
  const auto gap = Summary({run_of(slices)}).under("udp", 997, "pkprof", "bare");
  EXPECT_EQ(gap->turns, 9u);
  EXPECT_NEAR(gap->median, 0.015, 1e-9);
  EXPECT_NEAR(gap->from, 0.012, 1e-9);  // the second and the second last of nine
  EXPECT_NEAR(gap->to, 0.018, 1e-9);
}

TEST(Summary, ARoundHasSeveralTurns) {
  auto run = run_of({slice(kPlain, 1, 100), slice("bare", 1, 90), slice(kPlain, 1, 100),
                     slice("bare", 1, 98), slice(kPlain, 1, 100), slice("pkprof", 1, 96),
                     slice(kPlain, 1, 100)});
  run.slices[1].turn = 1;
  run.slices[3].turn = run.slices[5].turn = 2;
  const Summary summary({run});
  EXPECT_EQ(summary.ratio("udp", 997, "bare")->turns, 2u);
  EXPECT_NEAR(summary.ratio("udp", 997, "bare")->median, 0.94, 1e-12);
  const auto gap = summary.under("udp", 997, "pkprof", "bare");
  EXPECT_EQ(gap->turns, 1u);
  EXPECT_NEAR(gap->median, 0.02, 1e-12);
}

TEST(Targets, AnIntervalAcrossTheLimitIsNotCertain) {
  const Target target{"udp", "pkprof", "bare", 0.01};
  EXPECT_EQ(verdict(target, {9, 0.005, 0.002, 0.009}), "met");
  EXPECT_EQ(verdict(target, {9, 0.005, 0.002, 0.02}), "met, not certain");
  EXPECT_EQ(verdict(target, {9, 0.015, 0.002, 0.02}), "missed, not certain");
  EXPECT_EQ(verdict(target, {9, 0.015, 0.012, 0.02}), "missed");
  EXPECT_EQ(verdict(target, {5, 0.005, 0.002, 0.009}), "too few");
}

TEST(Log, IsReadBackAsItWasWritten) {
  auto run = run_of({slice(kPlain, 1, 123.25), slice("bare", 1, 0.5)});
  run.slices[1].turn = 3;
  run.skipped = {{"nginx", "it \"is\" not\ninstalled"}};
  run.failures = {{slice("bare", 2, 0), "gone \xff"}};
  run.info.cpus = 2;
  run.info.seconds = 0.5;
  run.info.lead = 2;
  run.info.settle = 1.5;
  run.info.turns = 10;
  run.info.awake = true;
  const auto runs = parse_log(log_of(run) + "{\"later\":1}\n\n" + log_of(run));
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2u);
  const auto& back = runs->front();
  EXPECT_EQ(back.info.kernel, "6.1");
  EXPECT_EQ(back.info.seconds, 0.5);
  EXPECT_EQ(back.info.lead, 2);
  EXPECT_EQ(back.info.settle, 1.5);
  EXPECT_EQ(back.info.turns, 10);
  EXPECT_TRUE(back.info.awake);
  EXPECT_EQ(back.info.workloads.front().unit, "packets/s");
  ASSERT_EQ(back.slices.size(), 2u);
  EXPECT_EQ(back.slices[0].value, 123.25);
  EXPECT_EQ(back.slices[1].hz, 997);
  EXPECT_EQ(back.slices[1].turn, 3);
  EXPECT_EQ(back.skipped.front().why, "it \"is\" not\ninstalled");
  EXPECT_EQ(back.failures.front().slice.variant, "bare");
}

TEST(Log, ALineThatIsNoneIsNamed) {
  const auto runs = parse_log("{\"run\":{}}\n{\"workload\":\"udp\"}\n");
  ASSERT_FALSE(runs);
  EXPECT_TRUE(runs.error().message.starts_with("line 2: ")) << runs.error().message;
  EXPECT_FALSE(parse_log("{\n"));
}

TEST(Page, SaysWhatTheLogSays) {
  auto run = run_of({slice(kPlain, 1, 50000), slice("bare", 1, 49000), slice("pkprof", 1, 48900),
                     slice("perf", 1, 49000), slice(kPlain, 1, 50000)});
  run.skipped = {{"bpftrace", "bpftrace is not installed"}};
  run.failures = {{slice("pkprof", 2, 0), "a | and <b>"}};
  const std::string page = page_text({run});
  for (const char* line :
       {"2026-01-01: Linux 6.1",
        "| UDP flood | 50.0 k packets/s | – | 0.980 (0.980–0.980) | 0.978 (0.978–0.978) |",
        "| UDP flood | pkprof | perf | 0.002 (0.002 to 0.002) | 1 | 0.02 | too few |",
        "| about 0.40 | about 0.20 | 0.980 | 0.978 | – |",
        "`bpftrace` was skipped: bpftrace is not installed",
        "`udp` with `pkprof`: 1 slices failed; the last: a \\| and &lt;b>"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << "\nis not in\n" << page;
  }
}

TEST(Page, RunsOfOneKindAreOneLine) {
  const auto one =
      run_of({slice(kPlain, 1, 50000), slice("bare", 1, 49000), slice("bare", 3, 49000)});
  auto other = run_of({slice(kPlain, 1, 50000), slice("bare", 1, 49000)});
  auto later = other;
  later.info.date = "2026-01-02";
  const std::string page = page_text({one, other, one, later});
  EXPECT_NE(page.find("; 3 runs of 1 to 3 rounds; slices of "), std::string::npos) << page;
  EXPECT_NE(page.find("; 1 round; slices of "), std::string::npos) << page;
  EXPECT_EQ(page.find("*wait*"), std::string::npos) << page;
}

TEST(Table, SaysWhatTheLogSays) {
  auto run = run_of({slice(kPlain, 1, 50000), slice("perf", 1, 49000), slice("pkprof", 1, 48000),
                     slice(kPlain, 1, 50000)});
  run.info.variants.push_back({"perf", "perf record"});
  run.skipped = {{"bpftrace", "bpftrace is not installed"}};
  const std::string table = table_text({run});
  for (const char* part : {"UDP flood, 997 Hz: 50.0 k packets/s without", "0.980", "0.960",
                           "-0.020 to perf (-0.020 ... -0.020), limit -0.02: too few",
                           "skipped: bpftrace: bpftrace is not installed"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\nis not in\n" << table;
  }
}

TEST(RateText, HasTheDigitsThatMeanSomething) {
  EXPECT_EQ(rate_text(3412345), "3.41 M");
  EXPECT_EQ(rate_text(411230), "411.2 k");
  EXPECT_EQ(rate_text(9876), "9876");
  EXPECT_EQ(rate_text(87.3), "87.3");
}

}  // namespace
}  // namespace pkprof::overhead
