// SPDX-License-Identifier: Apache-2.0
// Files are written whole or not at all.
#include "model/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "model/pprof/pprof.h"
#include "random_profile.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pkprof-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), {}));
  }
  static std::string contents(const std::string& path) {
    return read_file(path, 1 << 20).value_or("(unreadable)");
  }

  fs::path directory_;
};

TEST_F(File, NewAndReplaced) {
  ASSERT_TRUE(write_file(path("a"), "one"));
  EXPECT_EQ(contents(path("a")), "one");
  ASSERT_TRUE(write_file(path("a"), "two"));
  EXPECT_EQ(contents(path("a")), "two");
  EXPECT_EQ(entries(), 1u) << "no litter";
  struct stat info{};
  ASSERT_EQ(stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(File, ASymbolicLinkStaysOne) {
  ASSERT_TRUE(write_file(path("target"), "one"));
  fs::create_symlink(path("target"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "two"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(contents(path("target")), "two");
  fs::create_symlink("not-yet", path("forward"));
  ASSERT_TRUE(write_file(path("forward"), "three"));
  EXPECT_EQ(contents(path("not-yet")), "three");
  fs::create_symlink("round", path("round"));
  EXPECT_FALSE(write_file(path("round"), "four"));
}

TEST_F(File, RelativePath) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_TRUE(write_file("here", "x"));
  fs::current_path(before);
  EXPECT_EQ(contents(path("here")), "x");
}

TEST_F(File, FailuresNameTheFileAndTheCause) {
  const Result<> missing = write_file(path("no/such/dir"), "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "writing " + path("no/such/dir") + ": No such file or directory");
  const Result<> directory = write_file(directory_.string(), "x");
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("Is a directory"), std::string::npos);
  EXPECT_FALSE(read_file(path("nothing"), 10));
  EXPECT_FALSE(read_file(directory_.string(), 10));
}

TEST_F(File, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(write_file(path("a"), "0123456789"));
  EXPECT_TRUE(read_file(path("a"), 10));
  EXPECT_FALSE(read_file(path("a"), 9));
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20));
}

TEST_F(File, DevicesAreWrittenToDirectly) {
  EXPECT_TRUE(write_file("/dev/null", "x"));
  const Result<> full = write_file("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
  struct stat info{};
  ASSERT_EQ(stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(File, APipeIsWrittenToDirectly) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  Result<std::string> got;
  std::thread reader([&] { got = read_file(path("pipe"), 100); });
  EXPECT_TRUE(write_file(path("pipe"), "through"));
  reader.join();
  EXPECT_EQ(got.value_or("?"), "through");
}

TEST_F(File, StandardOutputKeepsItsFile) {
  const int file = open(path("out").c_str(), O_RDWR | O_CREAT, 0600);
  const std::string name = "/dev/fd/" + std::to_string(file);
  EXPECT_TRUE(write_file(name, "one "));
  EXPECT_TRUE(write_file(name, "two"));
  const Result<Fd> opened = open_to_write(name);
  ASSERT_TRUE(opened);
  EXPECT_EQ(write(opened->get(), " three", 6), 6);
  // By way of a link, as /dev/stdout is one, it is what is open there that is written to.
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), path("link"));
  EXPECT_TRUE(write_file(path("link"), "ONE"));
  EXPECT_TRUE(open_to_write(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  close(file);
  EXPECT_EQ(contents(path("out")), "ONE two three");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), path("to-pipe"));
  EXPECT_TRUE(write_file(path("to-pipe"), "through"));
  close(ends[1]);
  char got[16] = {};
  EXPECT_EQ(read(ends[0], got, sizeof(got)), 7);
  close(ends[0]);
}

// A disk that is full, played by a limit on the size of files; in a child, since it is for good.
TEST_F(File, AFullDiskLeavesWhatWasThere) {
  ASSERT_TRUE(write_file(path("a"), "old"));
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 100, .rlim_max = 100};
    setrlimit(RLIMIT_FSIZE, &small);
    const bool old_failed = !write_file(path("a"), std::string(1000, 'x'));
    const bool new_failed = !write_file(path("b"), std::string(1000, 'x'));
    _exit(old_failed && new_failed ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(path("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

// Two that write one file at a time: each finds the other's in the middle of being replaced.
TEST_F(File, TwoWriters) {
  const auto write_often = [&](char what) {
    for (int i = 0; i < 300; ++i) {
      const Result<> written = write_file(path("a"), std::string(100, what));
      if (!written) return written.error().message;
    }
    return std::string();
  };
  ASSERT_TRUE(write_file(path("a"), "first"));
  std::string failure;
  std::thread other([&] { failure = write_often('x'); });
  EXPECT_EQ(write_often('y'), "");
  other.join();
  EXPECT_EQ(failure, "");
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(contents(path("a")).size(), 100u);
}

// A folder as /tmp is, and what another user put there under the name that root will use.
class SharedFolder : public File {
 protected:
  static constexpr uid_t other_user = 65534;

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    File::SetUp();
    fs::create_directory(path("shared"));
    ASSERT_EQ(chmod(path("shared").c_str(), 01777), 0);
  }
  void give_away(const std::string& name) const {
    ASSERT_EQ(lchown(path(name).c_str(), other_user, other_user), 0);
  }
  [[nodiscard]] std::string why_not(const std::string& name) const {
    const Result<Fd> opened = open_to_write(path(name));
    const Result<> written = write_file(path(name), "secret");
    EXPECT_EQ(!opened, !written) << name;
    return written ? "" : written.error().message;
  }
};

TEST_F(SharedFolder, ALinkOfAnotherUserIsNotFollowed) {
  ASSERT_TRUE(write_file(path("roots"), "root's own"));
  fs::create_symlink(path("roots"), path("shared/page"));
  fs::create_symlink(path("nothing"), path("shared/dangling"));
  fs::create_directory_symlink(directory_, path("shared/folder"));
  fs::create_symlink("shared/page", path("indirect"));
  for (const char* name : {"shared/page", "shared/dangling", "shared/folder"}) give_away(name);
  for (const char* name : {"shared/page", "shared/dangling", "indirect"}) {
    EXPECT_EQ(why_not(name), "writing " + path(name) +
                                 ": it is another user's link in a folder that others write to");
  }
  EXPECT_FALSE(make_directory(path("shared/folder"), 0755));
  EXPECT_EQ(contents(path("roots")), "root's own");
  EXPECT_FALSE(fs::exists(path("nothing")));

  fs::create_symlink(path("roots"), path("shared/own"));
  EXPECT_EQ(why_not("shared/own"), "");
  EXPECT_EQ(contents(path("roots")), "secret");
}

TEST_F(SharedFolder, AFifoOfAnotherUserGetsNothing) {
  for (const char* name : {"shared/fifo", "fifo"}) {
    ASSERT_EQ(mkfifo(path(name).c_str(), 0666), 0);
    give_away(name);
    const int reader = open(path(name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_EQ(why_not(name), "writing " + path(name) + ": it is another user's FIFO");
    char byte = 0;
    EXPECT_EQ(read(reader, &byte, 1), 0) << name;
    close(reader);
  }
}

TEST_F(SharedFolder, AFileOfAnotherUserStays) {
  ASSERT_TRUE(write_file(path("shared/page"), "another's"));
  give_away("shared/page");
  EXPECT_EQ(why_not("shared/page"),
            "writing " + path("shared/page") +
                ": it is another user's file in a folder that others write to");
  EXPECT_EQ(contents(path("shared/page")), "another's");
  // Elsewhere it was not put there for us to find.
  ASSERT_TRUE(write_file(path("page"), "another's"));
  give_away("page");
  EXPECT_EQ(why_not("page"), "");
}

// The name goes to a new file; the one that has it, and other names, is not written to.
TEST_F(SharedFolder, AHardLinkIsReplaced) {
  ASSERT_TRUE(write_file(path("roots"), "root's own"));
  fs::create_hard_link(path("roots"), path("shared/page"));
  EXPECT_FALSE(open_to_write(path("shared/page"))) << "what is written bit by bit is not replaced";
  EXPECT_TRUE(write_file(path("shared/page"), "secret"));
  EXPECT_EQ(contents(path("shared/page")), "secret");
  EXPECT_EQ(contents(path("roots")), "root's own");
}

TEST_F(SharedFolder, ADirectoryOfAnotherUserIsNotOurs) {
  EXPECT_TRUE(make_directory(path("shared/gmon"), 0755));
  EXPECT_TRUE(make_directory(path("shared/gmon"), 0755));
  give_away("shared/gmon");
  EXPECT_FALSE(make_directory(path("shared/gmon"), 0755));
}

// Killed at any moment, the name holds all of the old contents or all of the new.
TEST_F(File, KilledWhileWriting) {
  const std::string old_contents(3'000'000, 'o');
  const std::string new_contents(3'000'000, 'n');
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(write_file(path("a"), old_contents));
    const pid_t child = fork();
    if (child == 0) {
      while (write_file(path("a"), new_contents)) {
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(i) * 500);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string got = read_file(path("a"), 1 << 23).value();
    EXPECT_TRUE(got == old_contents || got == new_contents);
  }
}

TEST_F(File, ProfilesGoThroughFiles) {
  const Profile profile = test::small_machine();
  ASSERT_TRUE(write_profile(profile, path("p.pb.gz")));
  const Result<Profile> back = read_profile(path("p.pb.gz"));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(test::described(*back), test::described(profile));

  ASSERT_TRUE(write_file(path("junk"), "junk"));
  const Result<Profile> junk = read_profile(path("junk"));
  ASSERT_FALSE(junk);
  EXPECT_TRUE(junk.error().message.starts_with("reading " + path("junk") + ": not a readable"))
      << junk.error().message;
}

}  // namespace
}  // namespace pkprof
