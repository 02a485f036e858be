// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernel/online_cpus.h"

namespace pkprof {
namespace {

using End = CpuAbsence::End;
using Sentences = std::vector<std::string>;

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t begin = 5'000 * ms;
constexpr uint64_t end = 15'000 * ms;

CpuAbsence over(uint32_t cpu, uint64_t from, uint64_t until) {
  return {.cpu = cpu, .from = from, .until = until, .end = End::sampled};
}

TEST(OnlineCpus, ListsAreTheKernels) {
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_list(std::vector<uint32_t>{3}), "3");
  EXPECT_EQ(cpu_list(std::vector<uint32_t>{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(OnlineCpus, NothingIsSaidOfNothing) {
  EXPECT_EQ(describe({}, begin, end), Sentences{});
}

TEST(OnlineCpus, ThoseThatCameBack) {
  EXPECT_EQ(describe(std::vector{over(1, begin + 2'000 * ms, begin + 3'500 * ms)}, begin, end),
            Sentences{"CPU 1 was offline for a while: 1.5 s of CPU time, up to when it was sampled "
                      "again, are UNCLAIMED: unsampled"});
  // A suspend; and one of them once more.
  EXPECT_EQ(describe(std::vector{over(2, begin, begin + 500 * ms), over(1, begin, begin + 500 * ms),
                                 over(1, begin + 700 * ms, begin + 800 * ms)},
                     begin, end),
            Sentences{"CPUs 1-2 were offline for a while: 1.1 s of CPU time, up to when they were "
                      "sampled again, are UNCLAIMED: unsampled"});
}

// Of an interval, what falls into it.
TEST(OnlineCpus, OnlyInThatPart) {
  const std::vector all{over(1, begin - 3'000 * ms, begin),
                        over(2, begin - 1'000 * ms, begin + 250 * ms),
                        over(3, end, end + 1'000 * ms)};
  EXPECT_EQ(
      describe(all, begin, end),
      Sentences{"CPU 2 was offline for a while: 250 ms of CPU time, up to when it was sampled "
                "again, are UNCLAIMED: unsampled"});
}

TEST(OnlineCpus, ThoseThatAreAway) {
  EXPECT_EQ(describe(std::vector<CpuAbsence>{{.cpu = 1, .from = begin + 2'000 * ms}}, begin, end),
            Sentences{"CPU 1 went offline 2.0 s after the start, and is not sampled any more: its "
                      "time since then, 8.0 s, is UNCLAIMED: unsampled"});
  EXPECT_EQ(describe(std::vector<CpuAbsence>{{.cpu = 1, .from = begin - 1}}, begin, end),
            Sentences{"CPU 1 went offline before this, and is left out"});
}

TEST(OnlineCpus, ThoseThatNobodyTookIn) {
  EXPECT_EQ(describe(std::vector<CpuAbsence>{{.cpu = 6, .end = End::unopened},
                                             {.cpu = 7, .end = End::unopened}},
                     begin, end),
            Sentences{"CPUs 6-7 were offline at the start, came later, and are left out"});
}

}  // namespace
}  // namespace pkprof
