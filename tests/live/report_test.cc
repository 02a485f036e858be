// SPDX-License-Identifier: Apache-2.0
// Files: what `report` does with good and bad ones, how it looks, and what is left behind when
// one cannot be written.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"

namespace pkprof::live {
namespace {

void expect_failure(const Finished& finished) {
  EXPECT_EQ(finished.status, 125);
  EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  EXPECT_TRUE(finished.err.starts_with("pkprof: ")) << finished.err;
  EXPECT_EQ(finished.out, "");
}

class ReportTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0 || !capability_works("sampling")) return;
    shared_ = std::make_unique<TempDir>();
    good_ = shared_->file("good.pb.gz");
    run_pkprof({"record", "-o", good_, "--", testnet::sibling("pk_hog"), "--seconds", "0.5"});
  }
  static void TearDownTestSuite() { shared_.reset(); }
  void SetUp() override { skip_unless_able(); }

  static inline std::unique_ptr<TempDir> shared_;
  static inline std::string good_;
  TempDir dir_;
};

TEST_F(ReportTest, FilesThatAreNoProfile) {
  const std::string file = dir_.file("file");
  expect_failure(run_pkprof({"report", dir_.file("missing")}));
  expect_failure(run_pkprof({"report", dir_.path()}));
  write_file(file, "");
  expect_failure(run_pkprof({"report", file}));
  write_file(file, "no profile at all\n");
  expect_failure(run_pkprof({"report", file}));
  expect_failure(run_pkprof({"report", "/proc/self/exe"}));
  const std::string good = read_file(good_);
  for (const size_t size : {good.size() / 2, good.size() - 1, size_t{10}}) {
    write_file(file, good.substr(0, size));
    expect_failure(run_pkprof({"report", file, "--json"}));
  }
}

TEST_F(ReportTest, AProgramThatIsNoOneNeedsNoPrivilege) {
  // A copy, since the build directory may be closed to others.
  std::filesystem::copy_file(testnet::sibling("pkprof"), dir_.file("pkprof"));
  std::filesystem::copy_file(good_, dir_.file("good.pb.gz"));
  for (const char* name : {"", "pkprof", "good.pb.gz"}) chmod(dir_.file(name).c_str(), 0755);
  const Finished shown =
      run_program({dir_.file("pkprof"), "report", dir_.file("good.pb.gz"), "--json"},
                  {.before_exec = [] { (void)!setuid(65534); }});
  EXPECT_EQ(shown.status, 0) << shown.err;
  expect_ledger_sums(Report::parse(shown.out));
}

TEST_F(ReportTest, Views) {
  const Finished ledger = run_pkprof({"report", good_});
  EXPECT_EQ(ledger.status, 0);
  EXPECT_NE(ledger.out.find("pk_hog"), std::string::npos);
  const Finished flat = run_pkprof({"report", good_, "--view", "flat"}, {.env = {"COLUMNS=160"}});
  EXPECT_EQ(flat.status, 0);
  EXPECT_NE(flat.out.find("run(int, char**)"), std::string::npos) << flat.out;
  const Finished graph = run_pkprof({"report", good_, "--view", "graph"}, {.env = {"COLUMNS=160"}});
  EXPECT_EQ(graph.status, 0);
  EXPECT_NE(graph.out.find("::run(int, char**) ["), std::string::npos) << graph.out;
  EXPECT_NE(graph.out.find("<spontaneous>"), std::string::npos) << graph.out;
  const Finished tree = run_pkprof({"report", good_, "--view", "tree"});
  EXPECT_EQ(tree.status, 0);
  EXPECT_NE(tree.out.find("run(int, char**)"), std::string::npos) << tree.out;
}

// gprof's listings leave nothing out, of all processes or of one, and name the process.
TEST_F(ReportTest, ListingsSumToTheLedger) {
  const Report report = read_report(good_);
  const std::string pid = std::to_string(*report.pids_of("pk_hog").begin());
  for (const char* view : {"flat", "graph"}) {
    for (const Argv& more : {Argv{}, Argv{"--pid", pid}, Argv{"--by", "comm"}}) {
      Argv command = {"report", good_, "--json", "--view", view};
      command.insert(command.end(), more.begin(), more.end());
      const Finished shown = run_pkprof(command);
      ASSERT_EQ(shown.status, 0) << shown.err;
      const auto listing = nlohmann::json::parse(shown.out);
      uint64_t sum = 0;
      for (const auto& function : listing["functions"]) sum += function["self_ns"].get<uint64_t>();
      for (const auto& [name, ns] : listing["rest"].items()) sum += ns.get<uint64_t>();
      EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(report.cpu_ns),
                  0.01 * static_cast<double>(report.cpu_ns));
    }
    const Finished one =
        run_pkprof({"report", good_, "--view", view, "--pid", pid}, {.env = {"COLUMNS=160"}});
    EXPECT_NE(one.out.find(pid + "u:main"), std::string::npos) << one.out;
  }
}

// What `pkprof report` prints on a terminal of its own, with one more setting in its environment.
std::string on_terminal(const std::string& file, const char* view, const char* setting) {
  const std::string program = testnet::sibling("pkprof");
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    if (setting != nullptr) putenv(const_cast<char*>(setting));
    execl(program.c_str(), "pkprof", "report", file.c_str(), "--view", view, nullptr);
    _exit(127);
  }
  EXPECT_GT(pid, 0);
  std::string out;
  char buffer[4096];
  // A terminal whose other end is closed reads as EIO.
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<size_t>(n));
  close(terminal);
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  return out;
}

TEST_F(ReportTest, ColourOnATerminalAloneAndNotWithNoColor) {
  for (const char* view : {"ledger", "flat", "graph", "tree"}) {
    EXPECT_NE(on_terminal(good_, view, nullptr).find("\x1b["), std::string::npos) << view;
    for (const char* setting : {"NO_COLOR=1", "TERM=dumb"}) {
      const std::string shown = on_terminal(good_, view, setting);
      EXPECT_EQ(shown.find('\x1b'), std::string::npos) << view << " " << setting;
      EXPECT_GT(shown.size(), 100U);
    }
    const Finished piped =
        run_pkprof({"report", good_, "--view", view}, {.env = {"TERM=xterm-256color"}});
    EXPECT_EQ(piped.out.find('\x1b'), std::string::npos) << view;
  }
}

TEST_F(ReportTest, ColumnsAreKept) {
  for (const char* view : {"ledger", "flat", "graph", "tree"}) {
    for (const size_t width : {80U, 120U, 160U}) {
      const Finished shown = run_pkprof({"report", good_, "--view", view},
                                        {.env = {"COLUMNS=" + std::to_string(width), "LC_ALL=C"}});
      std::istringstream in(shown.out);
      // What is said at the end is sentences, which have no columns.
      for (std::string line; std::getline(in, line) && line != "Incomplete";) {
        EXPECT_LE(line.size(), width) << view << ": " << line;
      }
    }
  }
}

TEST_F(ReportTest, AFullStandardOutputIsAFailure) {
  const Finished shown = run_pkprof({"report", good_, "--json"}, {.out_path = "/dev/full"});
  EXPECT_EQ(shown.status, 125);
  EXPECT_NE(shown.err.find("No space left"), std::string::npos) << shown.err;
}

size_t entries(const std::string& path) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

TEST_F(ReportTest, NothingStaysOfAFileThatCannotBeWritten) {
  expect_failure(run_pkprof({"record", "-a", "-d", "0.2", "-o", dir_.file("no/such/dir/file")}));
  expect_failure(run_pkprof({"record", "-a", "-d", "0.2", "-o", dir_.path()}));
  expect_failure(run_pkprof({"record", "-a", "-d", "0.2", "-o", "/dev/full"}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(entries(dir_.path()), 0);
}

class Mount {
 public:
  Mount(std::string path, const char* options) : path_(std::move(path)) {
    if (mount("tmpfs", path_.c_str(), "tmpfs", 0, options) != 0) {
      throw std::runtime_error("mounting a tmpfs");
    }
  }
  ~Mount() { umount2(path_.c_str(), MNT_DETACH); }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

 private:
  std::string path_;
};

TEST_F(ReportTest, NothingStaysOnAFullFileSystem) {
  const Mount small(dir_.path(), "size=64k,mode=755");
  const std::string file = dir_.file("profile");
  write_file(file, "before");
  EXPECT_THROW(write_file(dir_.file("filler"), std::string(1 << 20, 'x')), std::runtime_error);
  ASSERT_EQ(entries(dir_.path()), 2);
  expect_failure(run_pkprof({"record", "-a", "-d", "0.5", "-o", dir_.file("another")}));
  // What was there before stays as it was.
  expect_failure(run_pkprof({"record", "-a", "-d", "0.5", "-o", file}));
  EXPECT_EQ(read_file(file), "before");
  EXPECT_EQ(entries(dir_.path()), 2);
}

}  // namespace
}  // namespace pkprof::live
