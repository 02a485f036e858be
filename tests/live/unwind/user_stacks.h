// SPDX-License-Identifier: Apache-2.0
// Stacks of user code in a recording, and which of them reach the thread's beginning.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/profile.h"
#include "scenario.h"

namespace pkprof::live {

using Names = std::vector<std::string>;  // of functions, root first

class UserStacksTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  // With what is run at the beginning, if it is not to be met before.
  Profile record(const Argv& command, const char* seconds);

  // Each stack of user code of the processes that count, with its samples' time.
  static void each_stack(const Profile& profile, const std::function<bool(const Label&)>& counts,
                         const std::function<void(const Names&, uint64_t ns)>& use);
  // Of the processes by that name, the share of time that is whole is at least that.
  static void expect_whole(const Profile& profile, const std::string& comm, double at_least);

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  Stage stage_;
};

// A program whose symbols are stripped begins in a function that has no name, and calls libc's.
[[nodiscard]] bool is_whole(const Names& names);

}  // namespace pkprof::live
