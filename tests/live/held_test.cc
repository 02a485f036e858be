// SPDX-License-Identifier: Apache-2.0
// start, dump, reset, stop: a recording with no process of ours in between.
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Pair;
using Clock = std::chrono::steady_clock;

constexpr const char* bpffs = "/sys/fs/bpf";
constexpr const char* pins = "/sys/fs/bpf/pkprof";
constexpr const char* kept = "/run/pkprof";

void expect_ok(const Finished& f) {
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_EQ(f.err, "");
}

void expect_refused(const Finished& f, const std::string& why) {
  EXPECT_EQ(f.status, 125) << f.out;
  EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
  EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
}

// The kernel's objects of one kind that have a name of ours.
std::set<int> objects(const char* kind) {
  std::set<int> ids;
  const Finished f = run_program({find_program("bpftool"), "-j", kind, "show"});
  for (const auto& object : nlohmann::json::parse(f.out)) {
    const std::string name = object.value("name", "");
    if (name.starts_with("pk_") || name.starts_with("pkprof_")) ids.insert(object.value("id", 0));
  }
  return ids;
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
    if (std::filesystem::exists(pins)) GTEST_SKIP() << "somebody else's recording goes on";
  }
  void TearDown() override {
    if (this->IsSkipped()) return;
    if (std::filesystem::exists(pins)) run_pkprof({"stop"});
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

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Everything of the first is in the second, which came later.
void expect_more(const Report& later, const Report& earlier) {
  EXPECT_GT(later.duration_ns, earlier.duration_ns);
  EXPECT_GE(later.samples_taken, earlier.samples_taken);
  for (const Process& p : earlier.processes) {
    const Process* now = later.find(p.pid);
    ASSERT_NE(now, nullptr) << p.comm;
    EXPECT_GE(now->user_ns + now->own_ns, p.user_ns + p.own_ns) << p.comm;
  }
}

TEST_F(HeldNetworkTest, GoesOnByItself) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const auto expect_charged = [&](const Report& report) {
    expect_shares(report, received_elsewhere(report, {receiver}, hog_, {receiver, sender}), 98, 1);
  };
  const auto begun = Clock::now();
  expect_ok(run_pkprof({"start", "-F", in_guest() ? "199" : "997"}));
  const auto started = Clock::now();
  rest(2);
  const auto asked = Clock::now();
  const Report first = dump("first.pb.gz");
  EXPECT_GE(static_cast<double>(first.duration_ns) / 1e9,
            std::chrono::duration<double>(asked - started).count());
  EXPECT_LE(static_cast<double>(first.duration_ns) / 1e9, seconds_since(begun));
  expect_charged(first);

  rest(1);
  const Report second = dump("second.pb.gz");
  expect_charged(second);
  expect_more(second, first);

  const auto resetting = Clock::now();
  expect_ok(run_pkprof({"reset"}));
  rest(2);
  const Report anew = dump("anew.pb.gz");
  EXPECT_LE(static_cast<double>(anew.duration_ns) / 1e9, seconds_since(resetting));
  EXPECT_LE(anew.samples_taken, anew.cpus * anew.duration_ns * anew.frequency_hz / 900'000'000);
  expect_charged(anew);

  expect_ok(run_pkprof({"stop"}));
  const Report last = dump("last.pb.gz");
  expect_charged(last);
  expect_more(last, anew);
}

// kgmon's way: each flag a command, several in kgmon's order.
TEST_F(HeldTest, ByKgmonsFlags) {
  const auto pkgmon = [&](Argv flags, const std::string& state) {
    flags.insert(flags.begin(), testnet::sibling("pkgmon"));
    const Finished f = run_program(flags);
    expect_ok(f);
    EXPECT_TRUE(f.out.ends_with("pkgmon: kernel profiling is " + state + ".\n")) << f.out;
    return f.out;
  };
  const auto seconds = [](const std::string& text) {  // of "… = 2 CPUs x 1.5 s"
    const size_t at = text.find("CPUs x ");
    if (at == std::string::npos) return 0.0;
    const double number = std::stod(text.substr(at + 7));
    return text.find(" ms", at) == std::string::npos ? number : number / 1000;
  };
  pkgmon({}, "off");
  pkgmon({"-b"}, "running");
  rest(1.5);
  const std::string first = pkgmon({"-p", "-o", dir_.file("first")}, "running");
  EXPECT_GE(seconds(first), 1.5) << first;
  EXPECT_TRUE(std::filesystem::exists(dir_.file("first/gmon.out.all")));
  pkgmon({"-r"}, "running");
  rest(0.5);
  // What is written is what was before the reset; the halt comes last.
  const std::string second = pkgmon({"-h", "-p", "-o", dir_.file("second")}, "off");
  EXPECT_GE(seconds(second), 0.5);
  EXPECT_LT(seconds(second), seconds(first)) << second;
  const std::string after = pkgmon({"-p", "-r", "-o", dir_.file("kept")}, "off");
  EXPECT_GE(seconds(after), seconds(second));
  expect_refused(run_program({testnet::sibling("pkgmon"), "-p"}), "nothing is being recorded");
}

// As kgmon: a halt is a pause, until what was counted is reset.
TEST_F(HeldTest, KgmonGoesOnWithWhatItHalted) {
  const auto pkgmon = [&](Argv flags) {
    flags.insert(flags.begin(), testnet::sibling("pkgmon"));
    expect_ok(run_program(flags));
  };
  pkgmon({"-b"});
  rest(0.5);
  pkgmon({"-h"});
  const Report first = dump("first.pb.gz");
  rest(1.5);  // of which nothing counts
  const auto resumed = std::chrono::steady_clock::now();
  pkgmon({"-b"});
  EXPECT_EQ(nlohmann::json::parse(run_pkprof({"status", "--json"}).out).at("resumed"), true);
  rest(0.5);
  const Report both = dump("both.pb.gz");
  const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - resumed;
  const uint64_t half = in_guest() ? 2'000'000'000 : 500'000'000;
  EXPECT_GE(both.duration_ns, first.duration_ns + half);
  EXPECT_LT(both.duration_ns, first.duration_ns + static_cast<uint64_t>(since.count()));
  EXPECT_GT(both.samples_taken, first.samples_taken);
  pkgmon({"-h"});
  const uint64_t halted = dump("halted.pb.gz").duration_ns;
  EXPECT_GE(halted, both.duration_ns);
  pkgmon({"-b"});
  pkgmon({"-r"});
  EXPECT_LT(dump("reset.pb.gz").duration_ns, halted) << "what was halted is forgotten";
  expect_ok(run_pkprof({"stop", "-o", dir_.file("last.pb.gz")}));
  EXPECT_FALSE(std::filesystem::exists(kept));

  // A start begins anew.
  pkgmon({"-b"});
  pkgmon({"-h"});
  expect_ok(run_pkprof({"start"}));
  EXPECT_FALSE(std::filesystem::exists(kept));
}

// What is not ours to see is not looked at: only what the recording adds, and that it goes.
TEST_F(HeldTest, NothingIsLeftInTheKernel) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  // What an earlier recording leaves goes meanwhile.
  std::map<const char*, std::set<int>> before;
  for (const char* kind : {"prog", "map", "link"}) before[kind] = objects(kind);
  const auto fresh = [&](const char* kind) {
    return std::ranges::count_if(objects(kind), [&](int id) { return !before[kind].contains(id); });
  };
  expect_ok(run_pkprof({"start"}));
  EXPECT_GT(fresh("prog"), 10);
  EXPECT_GT(fresh("map"), 3);
  rest(0.3);
  expect_ok(run_pkprof({"stop", "-o", dir_.file("all.pb.gz")}));
  EXPECT_GT(read_report(dir_.file("all.pb.gz")).samples_taken, 0);
  EXPECT_FALSE(std::filesystem::exists(pins));
  EXPECT_FALSE(std::filesystem::exists(kept));
  for (const auto& [kind, ids] : before) {
    std::set<int> now;
    for (int i = 0; i < 100; ++i) {  // the kernel frees them after a grace period
      now = objects(kind);
      if (std::ranges::includes(ids, now)) break;
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_TRUE(std::ranges::includes(ids, now)) << kind;
  }
}

TEST_F(HeldTest, WithNothingStarted) {
  for (const char* command : {"stop", "reset", "dump", "status"})
    expect_refused(run_pkprof({command}), "nothing is being recorded: `pkprof start` begins");
}

TEST_F(HeldTest, ThereIsOneOnly) {
  expect_ok(run_pkprof({"start"}));
  expect_refused(run_pkprof({"start"}), "a recording goes on already");
  const auto status = nlohmann::json::parse(run_pkprof({"status", "--json"}).out);
  EXPECT_EQ(status.at("stopped"), false);
  EXPECT_GT(status.at("cpus"), 0);
  EXPECT_GT(status.at("duration_ns"), 0);
  EXPECT_GE(status.at("cost"), 0);
  const Finished text = run_pkprof({"status"});
  EXPECT_NE(text.out.find("recording since "), std::string::npos) << text.out;
}

TEST_F(HeldTest, AStoppedOneWaitsToBeDumped) {
  expect_ok(run_pkprof({"start"}));
  rest(0.3);
  expect_ok(run_pkprof({"stop"}));
  EXPECT_FALSE(std::filesystem::exists(pins));
  EXPECT_EQ(dump("a.pb.gz").samples_taken, dump("b.pb.gz").samples_taken);
  expect_ok(run_pkprof({"reset"}));
  EXPECT_FALSE(std::filesystem::exists(kept));
  expect_refused(run_pkprof({"dump", "-o", dir_.file("c.pb.gz")}), "nothing is being recorded");

  expect_ok(run_pkprof({"start"}));
  expect_ok(run_pkprof({"stop"}));
  expect_ok(run_pkprof({"start"}));
  EXPECT_FALSE(std::filesystem::exists(kept)) << "of an earlier recording";
}

TEST_F(HeldTest, IsForItsOwnerAlone) {
  expect_ok(run_pkprof({"start"}));
  struct stat s{};
  ASSERT_EQ(stat(pins, &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700);
  EXPECT_EQ(s.st_uid, 0);
  const Running::Options as_nobody{.before_exec = [] {
    if (setgid(65534) || setuid(65534)) _exit(99);
  }};
  for (const char* command : {"stop", "reset", "dump", "status", "start"})
    EXPECT_EQ(run_pkprof({command}, as_nobody).status, 125) << command;
  expect_ok(run_pkprof({"status"}));
  expect_ok(run_pkprof({"stop"}));
  ASSERT_EQ(stat(kept, &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700);
}

// At whatever moment it is killed: the next one starts.
TEST_F(HeldTest, AStartThatIsKilledHoldsNothingUp) {
  const int steps = in_guest() ? 3 : 12;
  for (int i = 0; i < steps; ++i) {
    Running start(pkprof_argv({"start"}));
    std::this_thread::sleep_for(std::chrono::milliseconds((in_guest() ? 1000 : 30) * i));
    start.signal(SIGKILL);
    start.wait();
    const bool is_whole = run_pkprof({"status"}).status == 0;
    if (is_whole) expect_ok(run_pkprof({"stop"}));
    expect_ok(run_pkprof({"start"}));
    expect_ok(run_pkprof({"stop"}));
  }
}

TEST_F(HeldTest, WhatWasHaltedOutlivesAKilledBegin) {
  const Argv begin = {testnet::sibling("pkgmon"), "-b"};
  expect_ok(run_program(begin));
  rest(0.3);
  expect_ok(run_program({testnet::sibling("pkgmon"), "-h"}));
  uint64_t before = dump("halted.pb.gz").duration_ns;
  const int steps = in_guest() ? 3 : 12;
  for (int i = 0; i < steps; ++i) {
    Running start(begin);
    std::this_thread::sleep_for(std::chrono::milliseconds((in_guest() ? 1000 : 30) * i));
    start.signal(SIGKILL);
    start.wait();
    run_pkprof({"stop"});  // of what there is
    const uint64_t now = dump("after.pb.gz").duration_ns;
    EXPECT_GE(now, before) << "step " << i;
    before = now;
  }
}

// The tables are another build's.
TEST_F(HeldTest, OfAnotherVersion) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  ASSERT_EQ(mkdir(pins, 0700), 0);
  const Finished made =
      run_program({find_program("bpftool"), "map", "create", std::string(pins) + "/about", "type",
                   "array", "key", "4", "value", "65536", "entries", "1", "name", "about"});
  ASSERT_EQ(made.status, 0) << made.err;
  for (const char* command : {"reset", "dump", "status"})
    expect_refused(run_pkprof({command}), "not of this version of pkprof");
  expect_refused(run_pkprof({"start"}), "a recording goes on already");
  expect_refused(run_pkprof({"stop"}), "what was counted could not be read");
  EXPECT_FALSE(std::filesystem::exists(pins));
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

// A profile that cannot be written is not lost with the recording.
TEST_F(HeldTest, AStopThatCannotWriteCanBeTriedAgain) {
  expect_ok(run_pkprof({"start"}));
  rest(0.3);
  EXPECT_EQ(run_pkprof({"stop", "-o", dir_.file("no/such/directory")}).status, 125);
  const Finished status = run_pkprof({"status"});
  EXPECT_NE(status.out.find("stopped"), std::string::npos) << status.out;
  const Report once = dump("once.pb.gz");
  expect_ok(run_pkprof({"stop", "-o", dir_.file("again.pb.gz")}));
  const Report again = read_report(dir_.file("again.pb.gz"));
  EXPECT_EQ(again.duration_ns, once.duration_ns);
  EXPECT_EQ(again.samples_taken, once.samples_taken);
  EXPECT_FALSE(std::filesystem::exists(pins));
}

}  // namespace
}  // namespace pkprof::live
