// SPDX-License-Identifier: Apache-2.0
// doctor, and what pkprof says where it may not do what it needs.
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give it up";
    // A copy, since the build directory may be closed to others.
    std::filesystem::copy_file(testnet::sibling("pkprof"), pkprof_);
    chmod(dir_.path().c_str(), 0777);
    chmod(pkprof_.c_str(), 0755);
  }

  // As nobody, with these capabilities and no others.
  static void become_nobody(const std::vector<int>& capabilities) {
    bool ok = setgroups(0, nullptr) == 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
              setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    for (const int c : capabilities) {
      auto& half = data[c / 32];
      half.effective |= 1U << (c % 32);
      half.permitted |= 1U << (c % 32);
      half.inheritable |= 1U << (c % 32);
    }
    ok = ok && syscall(SYS_capset, &header, data) == 0;
    for (const int c : capabilities) {
      ok = ok && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) == 0;
    }
    if (!ok) _exit(99);
  }

  Finished run_as_nobody(Argv arguments, const std::vector<int>& capabilities) {
    arguments.insert(arguments.begin(), pkprof_);
    return run_program(arguments,
                       {.before_exec = [&capabilities] { become_nobody(capabilities); }});
  }

  // From here on the call fails with this error, as where a container's filter refuses it.
  static void refuse(uint32_t call, uint32_t error) {
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
      _exit(99);
  }

  static void expect_one_clear_line(const Finished& finished) {
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_TRUE(finished.err.starts_with("pkprof: ")) << finished.err;
    EXPECT_EQ(finished.err.find("libbpf"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  }

  TempDir dir_;
  std::string pkprof_ = dir_.file("pkprof");
  std::string file_ = dir_.file("profile.pb.gz");
};

TEST_F(DoctorTest, SaysWhatWorks) {
  const Finished said = run_pkprof({"doctor", "--json"});
  EXPECT_EQ(said.err, "");
  const json d = json::parse(said.out);
  EXPECT_EQ(d.at("schema"), "pkprof.doctor/1");
  EXPECT_EQ(said.status == 0, d.at("can_record").get<bool>());
  EXPECT_GE(d.at("capabilities").size(), 10);
  for (const json& c : d.at("capabilities")) {
    EXPECT_NE(c.at("name"), "");
    EXPECT_NE(c.at("how"), "") << c;
    if (!c.at("works").get<bool>()) {
      EXPECT_NE(c.at("costs"), "") << c;
    }
  }
  const Finished text = run_pkprof({"doctor"});
  for (const json& c : d.at("capabilities")) {
    EXPECT_NE(text.out.find(c.at("name").get<std::string>()), std::string::npos);
  }
}

TEST_F(DoctorTest, WithoutPrivilege) {
  const Finished said = run_as_nobody({"doctor", "--json"}, {});
  EXPECT_EQ(said.status, 125);
  EXPECT_EQ(said.err, "");
  EXPECT_FALSE(json::parse(said.out).at("can_record").get<bool>());
  const Finished text = run_as_nobody({"doctor"}, {});
  EXPECT_NE(text.out.find("CAP_BPF"), std::string::npos) << text.out;

  const Finished recorded = run_as_nobody({"record", "-a", "-d", "0.2", "-o", file_}, {});
  EXPECT_EQ(recorded.status, 125);
  expect_one_clear_line(recorded);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(DoctorTest, ACommandIsNotRunWithoutPrivilege) {
  const Finished recorded =
      run_as_nobody({"record", "-o", file_, "--", "touch", dir_.file("it-ran")}, {});
  EXPECT_EQ(recorded.status, 125);
  expect_one_clear_line(recorded);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("it-ran")));
}

// Either it records, or it says which capability is missing; and doctor says the same.
TEST_F(DoctorTest, WithTwoCapabilities) {
  PKPROF_NEEDS("sampling");
  for (const std::vector<int>& capabilities :
       {std::vector<int>{CAP_BPF, CAP_PERFMON}, {CAP_BPF, CAP_PERFMON, CAP_SYSLOG}}) {
    const Finished said = run_as_nobody({"doctor", "--json"}, capabilities);
    ASSERT_NE(said.status, 99) << "the capabilities could not be had";
    const bool can = json::parse(said.out).at("can_record").get<bool>();
    std::filesystem::remove(file_);
    const Finished recorded =
        run_as_nobody({"record", "-a", "-d", "0.5", "-o", file_}, capabilities);
    EXPECT_EQ(can, recorded.status == 0) << said.out << recorded.err;
    if (recorded.status == 0) {
      EXPECT_EQ(recorded.err, "");
      EXPECT_GT(read_report(file_).samples_taken, 0);
    } else {
      EXPECT_EQ(recorded.status, 125);
      expect_one_clear_line(recorded);
      EXPECT_NE(recorded.err.find("CAP_"), std::string::npos) << recorded.err;
    }
  }
}

TEST_F(DoctorTest, WithOneCapability) {
  for (const int capability : {CAP_BPF, CAP_PERFMON}) {
    const Finished recorded =
        run_as_nobody({"record", "-a", "-d", "0.2", "-o", file_}, {capability});
    EXPECT_EQ(recorded.status, 125);
    expect_one_clear_line(recorded);
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

TEST_F(DoctorTest, ASeccompFilterIsNamed) {
  for (const uint32_t error : {EPERM, ENOSYS})
    for (const uint32_t call : {SYS_bpf, SYS_perf_event_open})
      for (const Argv& command : std::vector<Argv>{
               {"record", "-d", "0.1"}, {"stat", "-d", "0.1"}, {"start"}, {"hist", "--", "true"}}) {
        if (call == SYS_bpf && command[0] == "hist") continue;  // it needs none
        const Finished done = run_pkprof(command, {.before_exec = [&] { refuse(call, error); }});
        EXPECT_EQ(done.status, 125) << command[0];
        expect_one_clear_line(done);
        EXPECT_NE(done.err.find("a seccomp filter is in force"), std::string::npos) << done.err;
        EXPECT_FALSE(std::filesystem::exists("/sys/fs/bpf/pkprof"));
      }
}

}  // namespace
}  // namespace pkprof::live
