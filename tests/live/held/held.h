// SPDX-License-Identifier: Apache-2.0
// Recordings that go on with no process of ours: whatever a test started is stopped after it.
#pragma once

#include <gtest/gtest.h>

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "scenario.h"

namespace pkprof::live {

inline constexpr const char* bpffs = "/sys/fs/bpf";
inline constexpr const char* pins_dir = "/sys/fs/bpf/pkprof";
inline constexpr const char* kept_dir = "/run/pkprof";

inline void expect_ok(const Finished& f) {
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_EQ(f.err, "");
}

inline void expect_refused(const Finished& f, const std::string& why) {
  EXPECT_EQ(f.status, 125) << f.out;
  EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
  EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
}

// With a pair of namespaces, or without.
template <typename Base>
class WithHeld : public Base {
 protected:
  // Some machines mount it, some do not.
  static void SetUpTestSuite() {
    struct statfs fs{};
    if (geteuid() != 0 || statfs(bpffs, &fs) != 0 || fs.f_type == BPF_FS_MAGIC) return;
    mounted_ = mount("bpf", bpffs, "bpf", 0, nullptr) == 0;
  }
  static void TearDownTestSuite() {
    if (mounted_) umount(bpffs);
  }
  void SetUp() override {
    Base::SetUp();
    if (this->IsSkipped()) return;
    if (std::filesystem::exists(pins_dir)) GTEST_SKIP() << "somebody else's recording goes on";
  }
  void TearDown() override {
    if (this->IsSkipped()) return;
    if (std::filesystem::exists(pins_dir)) run_pkprof({"stop"});
    run_pkprof({"reset"});
  }
  [[nodiscard]] Report dump(const char* name) const {
    expect_ok(run_pkprof({"dump", "-o", dir_.file(name)}));
    return read_report(dir_.file(name));
  }
  static void rest(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * (in_guest() ? 4 : 1)));
  }

  static inline bool mounted_ = false;
  TempDir dir_;
};

class AloneTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  Turn turn_;
};

using HeldTest = WithHeld<AloneTest>;
using HeldNetworkTest = WithHeld<PairTest>;

}  // namespace pkprof::live
