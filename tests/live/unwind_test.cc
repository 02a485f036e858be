// SPDX-License-Identifier: Apache-2.0
// Stacks of user code reach the thread's beginning, in programs without frame pointers.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "model/pprof/pprof.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;  // root first

class UnwindTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  // With what is run at the beginning, if it is not to be met before.
  Profile record(const Argv& command, const char* seconds) {
    Argv argv = {"record", "-a", "--budget", "100", "-o", file_};
    if (seconds) argv.insert(argv.end(), {"-d", seconds});
    if (!command.empty()) argv.push_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    const Finished done = run_pkprof(argv);
    EXPECT_EQ(done.status, 0) << done.err;
    return must(read_profile(file_));
  }

  // Each stack of user code of the processes of that name, with its samples' time.
  static void each_stack(const Profile& profile, const std::function<bool(const Label&)>& counts,
                         const std::function<void(const Names&, uint64_t ns)>& use) {
    for (const Profile::Sample& sample : profile.samples()) {
      if (!counts(profile.labels()[sample.key.served])) continue;
      Names names;
      for (const FrameId id : profile.frames_of(sample.key.stack))
        if (profile.frames()[id].kind == FrameKind::user)
          names.insert(names.begin(), std::string(profile.text(profile.frames()[id].function)));
      if (!names.empty()) use(names, sample.value.ns);
    }
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  Stage stage_;
};

// A program whose symbols are stripped begins in a function that has no name, and calls libc's.
bool is_whole(const Names& names) {
  static const std::set<std::string> begins = {"_start", "clone3",  "__clone3",
                                               "clone",  "__clone", "_dl_start_user"};
  return begins.contains(names[0]) ||
         (names.size() > 1 && names[1].starts_with("__libc_start_main")) ||
         names[0].starts_with("libc.so.6+0x");  // a stripped one, where threads begin
}

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
  const std::string seconds = in_guest() ? "0.5" : "0.06";
  for (const char* build :
       {"O0_omit", "O1_omit", "O2_omit", "O3_omit", "Os_omit", "O0_no-omit", "O1_no-omit",
        "O2_no-omit", "O3_no-omit", "Os_no-omit", "O0_clang", "O2_clang"}) {
    if (in_guest() && std::string(build) != "O2_omit") continue;
    const Profile profile =
        record({testnet::sibling("pk_frames_" + std::string(build)), seconds}, nullptr);
    uint64_t all = 0;
    uint64_t right = 0;
    std::map<Names, uint64_t> wrong;
    std::set<Names> met;
    each_stack(
        profile, [](const Label& label) { return label.comm.starts_with("pk_frames"); },
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
    EXPECT_GE(static_cast<double>(right), 0.99 * static_cast<double>(all)) << build << "\n" << text;
    EXPECT_EQ(met.size(), ways.size()) << build;
  }
}

// As distributions build them. What of each is whole.
TEST_F(UnwindTest, OfDebiansPrograms) {
  struct Program {
    const char* name;
    Argv argv;
  };
  const Program programs[] = {
      {"openssl", {"openssl", "speed", "-seconds", "3", "-evp", "aes-128-gcm"}},
      {"perl",
       {"perl", "-e", "my %h; while (1) { $h{$n++ % 1000} .= 'x'; %h = () if $n % 1e6 == 0 }"}},
      {"python3",
       {"/usr/bin/python3", "-c",
        "import json\nwhile True: json.loads(json.dumps([{'a': i} for i in range(2000)]))"}},
      {"sqlite3",
       {"sqlite3", ":memory:",
        "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) "
        "from c;"}},
  };
  std::map<std::string, std::pair<uint64_t, uint64_t>> seen;  // all, whole
  for (const Program& program : programs) {
    if (find_program(program.argv[0]).empty()) continue;
    stage_.start(nullptr, program.argv, -1, false);
    seen[program.name];
  }
  const Profile profile = record({}, in_guest() ? "20" : "5");
  for (auto& [name, sums] : seen) {
    std::map<std::string, uint64_t> wrong;
    each_stack(
        profile, [&](const Label& label) { return label.comm == name; },
        [&](const Names& names, uint64_t ns) {
          sums.first += ns;
          if (is_whole(names))
            sums.second += ns;
          else
            wrong[names[0]] += ns;
        });
    std::string text;
    for (const auto& [root, ns] : wrong) text += root + " " + std::to_string(ns) + "\n";
    EXPECT_GT(sums.first, 0U) << name;
    EXPECT_GE(static_cast<double>(sums.second), 0.97 * static_cast<double>(sums.first))
        << name << "\n"
        << text;
  }
  if (!in_guest()) EXPECT_GE(seen.size(), 3U);
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

}  // namespace
}  // namespace pkprof::live
