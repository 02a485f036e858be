// SPDX-License-Identifier: Apache-2.0
// Stacks of user code reach the thread's beginning, in programs without frame pointers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/pprof/pprof.h"
#include "user_stacks.h"

namespace pkprof::live {
namespace {

using UnwindTest = UserStacksTest;

// From main on, the innermost last; what the program itself did not write is left out.
const std::set<Names> ways = {
    {"main", "plain", "spin"},
    {"main", "recursion", "recursion", "recursion", "recursion", "recursion", "recursion", "spin"},
    {"main", "with_alloca", "spin"},
    {"main", "realigned", "spin"},
    {"main", "large_frame", "spin"},
    {"main", "sorting", "compare", "spin"},
    {"main", "signalled", "handler", "spin"},
    {"main", "after_a_jump", "spin"},
    {"of_thread", "spin"},
};

TEST_F(UnwindTest, OfEachWayOfCalling) {
  std::set<std::string> own;
  for (const Names& way : ways) own.insert(way.begin(), way.end());
  std::vector<std::string> programs;
  for (const char* build :
       {"O0_omit", "O1_omit", "O2_omit", "O3_omit", "Os_omit", "O0_no-omit", "O1_no-omit",
        "O2_no-omit", "O3_no-omit", "Os_no-omit", "O0_clang", "O2_clang"})
    if (!in_guest() || std::string_view(build) == "O2_omit")
      programs.push_back("pk_frames_" + std::string(build));
  Argv one_by_one = {"sh", "-c", R"(for program; do "$program" $0; done)",
                     in_guest() ? "0.5" : "0.06"};
  for (const std::string& program : programs) one_by_one.push_back(testnet::sibling(program));
  const Profile profile = record(one_by_one, nullptr);
  for (const std::string& program : programs) {
    const std::string comm = program.substr(0, 15);
    uint64_t all = 0;
    uint64_t right = 0;
    std::map<Names, uint64_t> wrong;
    std::set<Names> met;
    each_stack(
        profile, [&](const Label& label) { return label.comm == comm; },
        [&](const Names& names, uint64_t ns) {
          Names way;
          bool spins = false;
          for (const std::string& name : names) {
            if (own.contains(name)) way.push_back(name);
            spins |= name == "spin";
          }
          if (!spins) return;
          all += ns;
          if (ways.contains(way) && is_whole(names)) {
            right += ns;
            met.insert(way);
          } else {
            wrong[names] += ns;
          }
        });
    std::string text;
    for (const auto& [names, ns] : wrong) {
      text += std::to_string(ns) + ":";
      for (const std::string& name : names) text += " " + name;
      text += "\n";
    }
    EXPECT_GE(static_cast<double>(right), 0.99 * static_cast<double>(all)) << program << "\n"
                                                                           << text;
    EXPECT_EQ(met.size(), ways.size()) << program;
  }
}

// It is over before tables could be made of the files that it is the first to lead to.
TEST_F(UnwindTest, FromTheFirstSampleOn) {
  uint64_t all = 0;
  uint64_t whole = 0;
  std::string example;
  for (int i = 0; i < 4; ++i) {
    const Profile profile =
        record({testnet::sibling("pk_frames_O2_omit"), in_guest() ? "0.05" : "0.005"}, nullptr);
    each_stack(
        profile, [](const Label& label) { return label.comm.starts_with("pk_frames"); },
        [&](const Names& names, uint64_t ns) {
          // Of a frame as large as that, and of two stacks, not all is handed over.
          const auto has = [&](const char* name) {
            return std::ranges::find(names, name) != names.end();
          };
          if (!has("spin") || has("large_frame") || has("handler")) return;
          all += ns;
          if (is_whole(names))
            whole += ns;
          else
            for (const std::string& name : names) example += name + " ";
        });
  }
  EXPECT_GT(all, 0U);
  EXPECT_GE(static_cast<double>(whole), 0.95 * static_cast<double>(all)) << example;
}

// Nothing comes of it but stacks that are cut: not for the program, and not for the recording.
TEST_F(UnwindTest, OfAProgramThatIsNeverTheSame) {
  const Finished done =
      run_pkprof({"record", "-a", "--budget", "100", "-F", in_guest() ? "199" : "5000", "-o", file_,
                  "--", testnet::sibling("pk_restless"), "3", dir_.file("code")});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  const Profile profile = must(read_profile(file_));
  uint64_t sum = 0;
  for (const Profile::Sample& sample : profile.samples()) sum += sample.value.ns;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(profile.cpu_ns()),
              0.005 * static_cast<double>(profile.cpu_ns()));
  uint64_t all = 0;
  uint64_t from_main = 0;
  each_stack(
      profile, [](const Label& label) { return label.comm == "pk_restless"; },
      [&](const Names& names, uint64_t ns) {
        all += ns;
        if (std::ranges::find(names, "main") != names.end()) from_main += ns;
      });
  EXPECT_GT(all, 300'000'000U);
  EXPECT_GT(from_main, all / 4);  // of code that nothing is known of, only the innermost frame is
}

}  // namespace
}  // namespace pkprof::live
