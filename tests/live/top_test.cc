// SPDX-License-Identifier: Apache-2.0
// pkprof top in a real terminal: tmux's, which says what is on its screen.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <thread>

#include "scenario.h"
#include "testdisk.h"

namespace pkprof::live {
namespace {

// A terminal of our own, and nobody else's tmux.
class Screen {
 public:
  Screen(const std::string& command, int width, int height) {
    tmux({"-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", std::to_string(width), "-y",
          std::to_string(height), "cd " + dir_.path() + "; " + command});
  }
  ~Screen() { tmux({"kill-server"}); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void press(const std::string& key) { tmux({"send-keys", "-t", "top", key}); }
  void resize(int width, int height) {
    tmux({"resize-window", "-t", "top", "-x", std::to_string(width), "-y", std::to_string(height)});
  }
  [[nodiscard]] std::string text() const { return tmux({"capture-pane", "-p", "-t", "top"}).out; }
  // With colours and such, as escape sequences.
  [[nodiscard]] std::string raw() const {
    return tmux({"capture-pane", "-p", "-e", "-t", "top"}).out;
  }
  // Until this is on it. What is on it then, or in the end.
  std::string wait_for(const std::string& what) const {
    std::string seen;
    for (int i = 0; i < (in_guest() ? 600 : 200); ++i) {
      seen = text();
      if (seen.find(what) != std::string::npos) return seen;
      std::this_thread::sleep_for(100ms);
    }
    ADD_FAILURE() << "never on the screen: " << what << "\n" << seen;
    return seen;
  }
  [[nodiscard]] const std::string& dir() const { return dir_.path(); }

 private:
  Finished tmux(Argv arguments) const {
    arguments.insert(arguments.begin(), {find_program("tmux"), "-S", dir_.file("socket")});
    Running::Options options;
    // Other shells end at Ctrl-C, too, and the terminal with them.
    options.env = {"LANG=C.UTF-8", "TERM=xterm-256color", "TMUX=", "SHELL=/bin/bash"};
    return run_program(arguments, options);
  }

  TempDir dir_;
};

class TopTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    if (find_program("tmux").empty()) GTEST_SKIP() << "needs tmux";
  }

  // What a shell is to run; it says the status, and waits to be looked at.
  static std::string command(const std::string& options = "", const std::string& env = "") {
    return "env " + env + " " + pkprof_argv({}).front() + " top " + options +
           "; echo status $?; sleep 600";
  }
  int start_hog() { return stage_.start_hog(last_cpu()); }

  Turn turn_{Turn::Kind::beside_others};
  Stage stage_;
};

// The line that a process is in.
std::string line_of(const std::string& screen, int pid) {
  std::istringstream lines(screen);
  for (std::string line; std::getline(lines, line);)
    if (std::istringstream words(line); true) {
      std::string first;
      words >> first;
      if (first == std::to_string(pid)) return line;
    }
  return "";
}

// CPU time of a process, ns.
double run_ns(int pid) {
  double ns = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/schedstat") >> ns;
  return ns;
}

TEST_F(TopTest, ShowsWhoRunsAndWhy) {
  const int hog = start_hog();
  const auto start = std::chrono::steady_clock::now();
  const double before = run_ns(hog);
  Screen screen(command(), 80, 24);
  const std::string list = screen.wait_for("pk_hog");
  EXPECT_NE(list.find("itself"), std::string::npos);
  EXPECT_NE(list.find("SEEMS   USER    OWN  ASYNC vCOSTS STOLEN"), std::string::npos) << list;
  std::istringstream words(line_of(list, hog));
  std::string pid;
  std::string comm;
  double seems = 0;
  double user = 0;
  words >> pid >> comm >> seems >> user;
  EXPECT_EQ(comm, "pk_hog");
  // Other tests run beside this one, and an emulated CPU has top itself to run: what it had
  // meanwhile, in percent, as the scheduler counts it, need not be what it had in the last second.
  const std::chrono::duration<double, std::nano> meanwhile =
      std::chrono::steady_clock::now() - start;
  const double had = 100 * (run_ns(hog) - before) / meanwhile.count();
  EXPECT_GT(seems, had / 2) << list;
  EXPECT_GT(user, had / 2) << list;
  EXPECT_GT(had, 5) << list;
  screen.press("/");
  for (const char* key : {"p", "k", "_", "h", "o", "g", "Enter", "Enter"}) screen.press(key);
  const std::string page = screen.wait_for("Hot stacks");
  EXPECT_NE(page.find("What it was for"), std::string::npos) << page;
  EXPECT_NE(page.find("pk_hog"), std::string::npos) << page;
}

TEST_F(TopTest, KeysDoWhatTheHelpSays) {
  const int hog = start_hog();
  Screen screen(command(), 80, 24);
  screen.wait_for("pk_hog");
  screen.press("?");
  EXPECT_NE(screen.wait_for("For whom is my kernel working?").find("freeze"), std::string::npos);
  screen.press("q");
  screen.press("f");
  const std::string frozen = screen.wait_for("FROZEN");
  stage_.stop(hog);
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(line_of(screen.text(), hog), line_of(frozen, hog));
  screen.press("f");
  screen.press("c");
  screen.wait_for("CGROUP");
  screen.press("H");
  screen.wait_for("PID/TID");
  screen.press("C");
  screen.wait_for("Which columns?");
  screen.press("Down");
  screen.press("Space");
  screen.wait_for("[ ]  USER");
  screen.press("Enter");
  screen.wait_for("SEEMS    OWN  ASYNC vCOSTS STOLEN");
}

TEST_F(TopTest, FollowsTheTerminalsSize) {
  start_hog();
  Screen screen(command(), 80, 24);
  screen.wait_for("pk_hog");
  for (const auto& [width, height] : {std::pair{200, 50}, {40, 10}, {20, 3}, {80, 24}}) {
    screen.resize(width, height);
    // On a wide terminal nothing need be cut.
    const std::string seen = screen.wait_for(width == 200 ? "q quit"
                                             : height > 3 ? "pk_hog"
                                                          : "pkprof top");
    std::istringstream lines(seen);
    int count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    EXPECT_LE(count, height) << seen;
  }
}

TEST_F(TopTest, SavesWhatIsOnTheScreen) {
  const int hog = start_hog();
  Screen screen(command(), 80, 24);
  screen.wait_for("pk_hog");
  screen.press("f");
  screen.press("w");
  const std::string seen = screen.wait_for("saved: pkprof report pkprof-top-");
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(screen.dir()))
    if (entry.path().filename().string().starts_with("pkprof-top-")) file = entry.path();
  ASSERT_NE(file, "");
  const Report report = read_report(file);
  const Process* process = report.find(hog);
  ASSERT_NE(process, nullptr);
  std::istringstream words(line_of(seen, hog));
  std::string pid;
  std::string comm;
  double seems = 0;
  double user = 0;
  words >> pid >> comm >> seems >> user;
  EXPECT_NEAR(
      user, 100.0 * static_cast<double>(process->user_ns) / static_cast<double>(report.duration_ns),
      0.051)
      << seen;
}

TEST_F(TopTest, NamesAreTextAndColoursCanBeOff) {
  // A name that would clear the screen and set its title.
  const std::string name = "\x1b[2J\x1b]0;x\a";
  TempDir dir;
  const std::string program = dir.file(name);
  std::filesystem::copy_file(testnet::sibling("pk_hog"), program);
  const Running hostile({program, "--seconds", "60"});
  const Screen coloured(command(), 80, 24);
  EXPECT_NE(coloured.wait_for("\\x1b[2J").find("STOLEN"), std::string::npos);
  EXPECT_NE(coloured.raw().find("\x1b[3"), std::string::npos);
  const Screen plain(command("", "NO_COLOR=1"), 80, 24);
  plain.wait_for("STOLEN");
  for (const char* colour : {"\x1b[31", "\x1b[32", "\x1b[33", "\x1b[36", ";3"})
    EXPECT_EQ(plain.raw().find(colour), std::string::npos) << colour;
  const Screen old(command("", "TERM=vt100"), 80, 24);
  old.wait_for("STOLEN");
}

// One that writes past the page cache, so much a second. It takes little CPU time. The disk lies on
// a file, so that another disk may write it, too.
TEST_F(TopTest, ShowsWhatDisksDoForWhom) {
  auto disk = testnet::Disk::create({.direct = true});
  if (!disk) GTEST_SKIP() << disk.error().message;
  const int writer = stage_.start(
      nullptr, {"pk_disk", "--file", disk->path("file"), "--mode", "direct", "--rate", "16"});
  Screen screen(command("--resource disk,wait"), 100, 24);
  std::string list = screen.wait_for("READ/s WRITE/s   WAIT");
  // With the first figures the disk may have been busy for others.
  const auto written = [&] {
    std::istringstream words(line_of(list, writer));
    std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    // PID, COMM, six of CPU time, READ/s, WRITE/s.
    return row.size() > 9 && row[9].ends_with("M") ? std::stod(row[9]) : 0;
  };
  for (int i = 0; i < 100 && written() < (in_guest() ? 1 : 12); ++i) {
    std::this_thread::sleep_for(200ms);
    list = screen.text();
  }
  EXPECT_GE(written(), in_guest() ? 1 : 12) << list;
  EXPECT_LE(written(), 2 * 20) << list;
  EXPECT_NE(list.find("all:   "), std::string::npos) << list;
  for (const char* title : {"vSTOLEN", "vREAD/s", "vWRITE/s"}) {
    screen.press(">");
    list = screen.wait_for(title);
  }
  list = list.substr(list.find("vWRITE/s"));
  const std::string first = list.substr(list.find('\n') + 1);
  EXPECT_NE(first.substr(0, first.find('\n')).find("pk_disk"), std::string::npos) << list;
}

TEST_F(TopTest, EndsAsItWasAsked) {
  {
    Screen screen(command(), 80, 24);
    screen.wait_for("STOLEN");
    screen.press("q");
    EXPECT_EQ(screen.wait_for("status 0").find("STOLEN"), std::string::npos)
        << "the terminal is as it was";
  }
  Screen screen(command("-F 499"), 80, 24);
  screen.wait_for("STOLEN");
  screen.press("C-c");
  screen.wait_for("status 0");
  Screen timed(command("-d 2"), 80, 24);
  timed.wait_for("status 0");
  Screen unknown(command("", "TERM=no-such-terminal"), 80, 24);
  unknown.wait_for("status 125");
  EXPECT_NE(unknown.text().find("set TERM"), std::string::npos) << unknown.text();
}

TEST_F(TopTest, WhereThereIsNoTerminalItSaysWhatElseThereIs) {
  const Finished piped = run_pkprof({"top"});
  EXPECT_EQ(piped.status, 125);
  EXPECT_NE(piped.err.find("pkprof stat --interval"), std::string::npos) << piped.err;
  EXPECT_EQ(run_pkprof({"top", "--", "true"}).status, 2);
}

}  // namespace
}  // namespace pkprof::live
