// SPDX-License-Identifier: Apache-2.0
// Whose a held recording is: its user's alone, and of the build that started it. What others put in
// its place is named, and nothing is done to it.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "held/held.h"

namespace pkprof::live {
namespace {

TEST_F(HeldTest, IsForItsOwnerAlone) {
  expect_ok(run_pkprof({"start"}));
  struct stat s{};
  ASSERT_EQ(stat(pins_dir, &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700);
  EXPECT_EQ(s.st_uid, 0);
  const Running::Options as_nobody{.before_exec = [] {
    if (setgid(65534) || setuid(65534)) _exit(99);
  }};
  for (const char* command : {"stop", "reset", "dump", "status", "start"})
    EXPECT_EQ(run_pkprof({command}, as_nobody).status, 125) << command;
  expect_ok(run_pkprof({"status"}));
  expect_ok(run_pkprof({"stop"}));
  ASSERT_EQ(stat(kept_dir, &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700);
}

// The tables are another build's.
TEST_F(HeldTest, OfAnotherVersion) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  ASSERT_EQ(mkdir(pins_dir, 0700), 0);
  const Finished made =
      run_program({find_program("bpftool"), "map", "create", std::string(pins_dir) + "/about",
                   "type", "array", "key", "4", "value", "65536", "entries", "1", "name", "about"});
  ASSERT_EQ(made.status, 0) << made.err;
  for (const char* command : {"reset", "dump", "status"})
    expect_refused(run_pkprof({command}), "not of this version of pkprof");
  expect_refused(run_pkprof({"start"}), "a recording goes on already");
  expect_refused(run_pkprof({"stop"}), "what was counted could not be read");
  EXPECT_FALSE(std::filesystem::exists(pins_dir));
}

TEST_F(HeldTest, ItsFileSystemIsMountedWhereItIsNot) {
  const std::string pkprof = pkprof_argv({"start"})[0];
  const auto elsewhere = [&](const std::string& script) {
    return run_program({find_program("unshare"), "-m", "sh", "-ec", script, pkprof});
  };
  const Finished mounted = elsewhere(
      "umount /sys/fs/bpf; \"$0\" start; \"$0\" stop -o /dev/null; stat -f -c %T /sys/fs/bpf");
  expect_ok(mounted);
  EXPECT_NE(mounted.out.find("bpf"), std::string::npos) << mounted.out;
  expect_refused(elsewhere("mount -t tmpfs none /sys/fs; \"$0\" start"),
                 "mount -t bpf bpf /sys/fs/bpf");
}

// Where anyone may make a directory: somebody else's under our name, a link, a file.
TEST_F(HeldTest, WhatIsNotOursIsNamed) {
  const std::string pkprof = pkprof_argv({"start"})[0];
  const auto where_anyone_may = [&](const std::string& script) {
    return run_program({find_program("unshare"), "-m", "sh", "-ec",
                        "umount /sys/fs/bpf; mount -t bpf -o mode=1777 bpf /sys/fs/bpf; cd " +
                            dir_.path() + "; as() { setpriv --clear-groups --reuid $@; }; " +
                            script,
                        pkprof});
  };
  const std::string gone = "; to remove it: rm -r /sys/fs/bpf/pkprof";
  for (const char* command : {"start", "stop", "reset", "dump", "status"}) {
    expect_refused(
        where_anyone_may("as 65534 mkdir /sys/fs/bpf/pkprof; \"$0\" " + std::string(command)),
        "but a directory of user 65534" + gone);
    expect_refused(where_anyone_may("as 65534 ln -s /sys/fs/bpf/x /sys/fs/bpf/pkprof; "
                                    "\"$0\" " +
                                    std::string(command)),
                   "but a file or link of user 65534" + gone);
    expect_refused(
        where_anyone_may("mkdir -m 755 /sys/fs/bpf/pkprof; \"$0\" " + std::string(command)),
        "others may enter it" + gone);
  }
  expect_ok(
      where_anyone_may("as 65534 mkdir /sys/fs/bpf/pkprof; rm -r /sys/fs/bpf/pkprof; "
                       "\"$0\" start; \"$0\" stop -o /dev/null"));
  // What is a link goes, not what it leads to.
  expect_ok(
      where_anyone_may("mkdir -m 700 /sys/fs/bpf/pkprof /sys/fs/bpf/other; "
                       "ln -s ../other /sys/fs/bpf/pkprof/link_0; "
                       "\"$0\" start; \"$0\" stop -o /dev/null; test -d /sys/fs/bpf/other"));
}

TEST_F(HeldTest, WhoMayNotStopIsTold) {
  const std::string pkprof = dir_.file("pkprof");
  std::filesystem::copy_file(pkprof_argv({})[0], pkprof);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  expect_ok(run_pkprof({"start"}));
  struct stat before{};
  ASSERT_EQ(stat(bpffs, &before), 0);
  ASSERT_EQ(chmod(bpffs, 01777), 0);
  const Running::Options as_nobody{.before_exec = [] {
    if (setgid(65534) || setuid(65534)) _exit(99);
  }};
  for (const char* command : {"stop", "reset", "dump", "status", "start"})
    expect_refused(run_program({pkprof, command}, as_nobody),
                   "is of user 0: what is recorded there only that user, or root, can");
  chmod(bpffs, before.st_mode);
  expect_ok(run_pkprof({"stop", "-o", "/dev/null"}));
}

}  // namespace
}  // namespace pkprof::live
