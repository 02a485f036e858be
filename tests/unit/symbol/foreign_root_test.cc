// SPDX-License-Identifier: Apache-2.0
// Whose names count: what a user has put below a root of his own, or beside a link of his, names no
// other process's functions.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fixture.h"
#include "symbol/elf/elf_handle.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

using test::Child;
using test::TempDir;

class ForeignRoot : public ::testing::Test {
 protected:
  // A program without symbols, its debug file, and one with the same build-id and another name for
  // main().
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "namespaces need root";
    program_ = test::compile(dir_, "program", "-no-pie -Wl,--build-id=sha1");
    for (const char* place : {"debug", "evil", "plain"})
      std::filesystem::create_directories(dir_ / place);
    true_debug_ = dir_ / "plain/true.debug";
    false_debug_ = dir_ / "false.debug";
    test::sh("chmod 755 " + dir_.path() + " && cd " + dir_.path() +
             " && objcopy --only-keep-debug program plain/true.debug"
             " && objcopy --redefine-sym main=stolen plain/true.debug false.debug"
             " && cp program whole && strip program"
             " && objcopy --add-gnu-debuglink=plain/true.debug program");
    const auto elf = ElfHandle::open(Fd(::open(program_.c_str(), O_RDONLY | O_CLOEXEC)));
    ASSERT_TRUE(elf);
    build_id_ = elf->build_id();
    ASSERT_GT(build_id_.size(), 2U);
  }

  [[nodiscard]] std::string by_build_id() const {
    return dir_ /
           ("debug/.build-id/" + build_id_.substr(0, 2) + "/" + build_id_.substr(2) + ".debug");
  }
  [[nodiscard]] UserSymbolsOptions options() const { return {.debug_dirs = {dir_ / "debug"}}; }
  // A process in a mount namespace of its own, after these commands there.
  [[nodiscard]] std::vector<std::string> in_namespace(const std::string& commands,
                                                      const std::string& program) const {
    return {"unshare", "-m", "sh", "-c", commands + " && exec " + program};
  }
  std::string name_of_main(UserSymbols& symbols, uint64_t process, Child& child) {
    const uint64_t main = std::stoull(child.line(), nullptr, 16);
    EXPECT_TRUE(symbols.read_proc(process, child.pid()));
    return symbols.find(process, main).function;
  }

  TempDir dir_;
  std::string program_, true_debug_, false_debug_, build_id_;
};

// What has no name is called by its place in its file.
bool is_place(const std::string& name) {
  return name.find("+0x") != std::string::npos;
}

TEST_F(ForeignRoot, ItsDebugFilesNameItsOwnProcesses) {
  UserSymbols symbols(options());
  Child inside(in_namespace("mount -t tmpfs none " + (dir_ / "debug") + " && install -D " +
                                false_debug_ + " " + by_build_id(),
                            program_));
  Child outside({program_});
  EXPECT_EQ(name_of_main(symbols, 1, inside), "stolen");
  EXPECT_TRUE(is_place(name_of_main(symbols, 2, outside)));
  Child beside(in_namespace("true", program_));
  EXPECT_TRUE(is_place(name_of_main(symbols, 3, beside))) << "in a third root";
}

TEST_F(ForeignRoot, TheSystemsDebugFilesComeFirst) {
  UserSymbols symbols(options());
  test::sh("install -D " + true_debug_ + " " + by_build_id());
  Child inside(in_namespace("mount -t tmpfs none " + (dir_ / "debug") + " && install -D " +
                                false_debug_ + " " + by_build_id(),
                            program_));
  Child outside({program_});
  EXPECT_EQ(name_of_main(symbols, 1, inside), "main");
  EXPECT_EQ(name_of_main(symbols, 2, outside), "main");
}

TEST_F(ForeignRoot, InAChroot) {
  UserSymbols symbols(options());
  const std::string jail = dir_ / "jail";
  test::sh("install -D " + false_debug_ + " " + jail + by_build_id());
  // The same file as the system's, below another root.
  Child inside({"unshare", "-m", "sh", "-c",
                "cd " + jail +
                    " && mkdir -p lib lib64 usr && mount --bind /lib lib && "
                    "mount --bind /lib64 lib64 && mount --bind /usr usr && touch p && "
                    "mount --bind " +
                    program_ + " p && exec chroot . /p"});
  Child outside({program_});
  EXPECT_EQ(name_of_main(symbols, 1, inside), "stolen");
  EXPECT_TRUE(is_place(name_of_main(symbols, 2, outside)));
}

// By a name that the process chose the system has a file that another user made.
TEST_F(ForeignRoot, ItsNamesForFilesAreNotTheSystems) {
  UserSymbols symbols(options());
  test::sh("cp " + false_debug_ + " " + (dir_ / "evil/true.debug"));
  const std::string there = dir_.write("evil/program", "");
  Child inside(in_namespace("mount --bind " + program_ + " " + there, there));
  Child outside({program_});
  EXPECT_EQ(name_of_main(symbols, 1, inside), "stolen") << "for itself";
  EXPECT_TRUE(is_place(name_of_main(symbols, 2, outside)));
}

TEST_F(ForeignRoot, ADebugFileIsItsProgramsOwners) {
  UserSymbols symbols(options());
  std::filesystem::rename(false_debug_, dir_ / "evil/true.debug");
  std::filesystem::create_hard_link(program_, dir_ / "evil/program");
  test::sh("chown 65534 " + (dir_ / "evil/true.debug"));
  Child linked({dir_ / "evil/program"});
  EXPECT_TRUE(is_place(name_of_main(symbols, 1, linked)));
  test::sh("touch " + program_ + " && chown 65534 " + program_);
  Child owned({dir_ / "evil/program"});
  EXPECT_EQ(name_of_main(symbols, 2, owned), "stolen");
}

// Whatever build-id a file claims, it is another file.
TEST_F(ForeignRoot, ABuildIdIsNoProof) {
  UserSymbols symbols(options());
  test::sh("cd " + dir_.path() + " && objcopy --redefine-sym main=stolen whole evil/program");
  Child hostile({dir_ / "evil/program"});
  Child honest({dir_ / "whole"});
  EXPECT_EQ(name_of_main(symbols, 1, hostile), "stolen");
  EXPECT_EQ(name_of_main(symbols, 2, honest), "main");
}

// What is remembered for processes that are gone is remembered for their root.
TEST_F(ForeignRoot, AnInodeOfAnotherFileSystemIsNoProof) {
  const std::string place = dir_ / "evil";
  Child inside(in_namespace(
      "mount -t tmpfs none " + place + " && cp " + (dir_ / "whole") + " " + place + "/program",
      place + "/program"));
  const uint64_t main = std::stoull(inside.line(), nullptr, 16);
  UserSymbols symbols(options());
  ASSERT_TRUE(symbols.read_proc(1, inside.pid()));
  UserMap map = symbols.find(1, main).map;
  map.device_major = 8;  // of a disk's file, which has the same inode
  symbols.add_map(1, map);
  EXPECT_EQ(symbols.find(1, main).function, "main");
  symbols.add_map(2, map);
  EXPECT_EQ(symbols.find(2, main).function, "");
  symbols.fork(1, 3);
  symbols.add_map(3, map);
  EXPECT_EQ(symbols.find(3, main).function, "main") << "in the same root";
}

}  // namespace
}  // namespace pkprof
