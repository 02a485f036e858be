// SPDX-License-Identifier: Apache-2.0
// What is in the stacks: a receiver's own code, its system call and the softirq that worked for it
// in one piece; names of functions of every kind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "model/pprof/pprof.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using namespace std::chrono_literals;
using testnet::Pair;

std::string tree_of(const std::string& file, int pid) {
  Argv argv = {"report", file, "--view", "tree", "--threshold", "0"};
  if (pid != 0) argv.insert(argv.end(), {"--pid", std::to_string(pid)});
  const Finished shown = run_pkprof(argv, {.env = {"LC_ALL=C", "COLUMNS=250"}});
  EXPECT_EQ(shown.status, 0) << shown.err;
  return shown.out;
}

// From the root: the receiver's code, its system call, and under it the interrupt work for it.
bool is_seamless(const std::vector<std::string>& names) {
  auto at = names.begin();
  for (const std::string_view next : {"pkprof::workload::udp_recv(", "recvfrom", "syscall:recvfrom",
                                      "softirq:NET_RX", "handle_softirqs|__do_softirq"}) {
    const auto is_next = [&](const std::string& name) {
      const size_t bar = next.find('|');
      return name.starts_with(next.substr(0, bar)) ||
             (bar != std::string_view::npos && name.starts_with(next.substr(bar + 1)));
    };
    at = std::find_if(at, names.end(), is_next);
    if (at == names.end()) return false;
    ++at;
  }
  return true;
}

class StacksTest : public PairTest {
 protected:
  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
};

// The way up a stack is remembered, and compared now and then with what the kernel says.
TEST_F(StacksTest, WhatIsRememberedOfStacksIsRight) {
  serve({"pk_udp", "recv", "--port", "7001"});
  Argv send = {"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"};
  Argv record = {"record", "-a", "-F", "3989", "--budget", "100", "-d", "4", "-o", file_};
  if (in_guest()) {
    send.insert(send.end(), {"--pps", "2000"});
    record = {"record", "-a", "-F", "499", "--budget", "100", "-d", "10", "-o", file_};
  }
  talk(send);
  ASSERT_EQ(run_pkprof(record).status, 0);
  const Profile profile = must(read_profile(file_));
  EXPECT_GT(profile.meta.samples_taken, 3000U) << "or little is compared";
  EXPECT_EQ(profile.meta.counters.at("kernel stacks with a frame too many or too few, about"), 0U);
}

TEST_F(StacksTest, AReceiversCodeAndItsSoftirqsAreOneStack) {
  PKPROF_NEEDS("network: who takes the data");
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  Argv send = {"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"};
  Argv record = {"record", "-a", "-d", "2", "-o", file_};
  if (in_guest()) {  // no more than an emulated CPU can take
    send.insert(send.end(), {"--pps", "2000"});
    record = {"record", "-a", "-F", "199", "--budget", "100", "-d", "10", "-o", file_};
  }
  talk(send);
  ASSERT_EQ(run_pkprof(record).status, 0);
  const Profile profile = must(read_profile(file_));
  // Of the softirq time for the receiver, how much hangs under its own call path, whole.
  uint64_t all = 0;
  uint64_t whole = 0;
  std::string example;
  for (const Profile::Sample& sample : profile.samples()) {
    const Label& served = profile.labels()[sample.key.served];
    if (served.pid != static_cast<uint32_t>(receiver) ||
        profile.text(sample.key.source) != "softirq:NET_RX")
      continue;
    all += sample.value.ns;
    std::vector<std::string> names;  // root first
    for (const FrameId id : profile.frames_of(sample.key.stack))
      names.insert(names.begin(), profile.text(profile.frames()[id].function));
    if (is_seamless(names)) whole += sample.value.ns;
    if (example.empty())
      for (const std::string& name : names) example += name + "\n";
  }
  EXPECT_GT(all, 0U);
  // The rest is of accounts that were full before the receiver came: its, but without the path.
  EXPECT_GE(static_cast<double>(whole), 0.7 * static_cast<double>(all)) << example;
}

class SymbolsTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  void record_for(double seconds) {
    const Finished done = run_pkprof({"record", "-a", "-d", std::to_string(seconds), "-o", file_});
    ASSERT_EQ(done.status, 0) << done.err;
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  Stage stage_;
};

TEST_F(SymbolsTest, CppNamesAreDemangled) {
  const int hog = stage_.start_hog(last_cpu());
  record_for(1);
  const std::string tree = tree_of(file_, hog);
  EXPECT_NE(tree.find("(anonymous namespace)::run(int, char**)"), std::string::npos) << tree;
  EXPECT_EQ(tree.find("_ZN"), std::string::npos) << tree;
}

TEST_F(SymbolsTest, AProcessThatEndsEarlyHasItsNames) {
  PKPROF_NEEDS("processes that end early");
  const Finished done =
      run_pkprof({"record", "-o", file_, "--", "sh", "-c",
                  testnet::sibling("pk_hog") + " --seconds 0.08 >/dev/null; sleep 1.2"});
  ASSERT_EQ(done.status, 0) << done.err;
  const std::string tree = tree_of(file_, 0);
  EXPECT_NE(tree.find("::run(int, char**)"), std::string::npos) << tree;
}

// Both are many times a second where the other was just before.
TEST_F(SymbolsTest, PlugInsInOnePlaceAreToldApart) {
  const Finished done = run_pkprof({"record", "--budget", "100", "-o", file_, "--",
                                    testnet::sibling("pk_plugins"), in_guest() ? "6000" : "1500"});
  ASSERT_EQ(done.status, 0) << done.err;
  std::istringstream truth(done.out);
  std::map<std::string, double> took;
  int moved = -1;
  truth >> took["in_plugin_one"] >> took["in_plugin_two"] >> moved;
  ASSERT_EQ(moved, 0) << done.out;
  const Profile profile = must(read_profile(file_));
  std::map<std::string, double> seen;
  for (const Profile::Sample& sample : profile.samples()) {
    const auto frames = profile.frames_of(sample.key.stack);
    if (frames.empty() || profile.text(sample.key.source) != "user") continue;
    const Frame& leaf = profile.frames()[frames.front()];
    const std::string name(profile.text(leaf.function));
    if (!took.contains(name)) continue;
    seen[name] += static_cast<double>(sample.value.ns);
    EXPECT_TRUE(profile.mappings()[leaf.mapping].file.ends_with("pk_" + name.substr(3) + ".so"));
  }
  for (const auto& [name, ns] : took) EXPECT_NEAR(seen[name] / ns, 1, 0.1) << name;
}

// A directory on another, for as long as this lives.
class Mounted {
 public:
  Mounted(const std::string& what, const std::string& where, const char* kind, unsigned long flags,
          const std::string& options)
      : where_(where) {
    if (mount(what.c_str(), where.c_str(), kind, flags, options.c_str()) != 0)
      throw std::runtime_error("mounting " + where + ": " + strerror(errno));
  }
  ~Mounted() { umount2(where_.c_str(), MNT_DETACH); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

 private:
  std::string where_;
};

// The kernel's, on a file that is removed. It may have been so when it was met, or not yet.
std::string without_remark(const std::string& path) {
  const std::string remark = " (deleted)";
  return path.ends_with(remark) ? path.substr(0, path.size() - remark.size()) : path;
}

// Where a program was mapped from, as the kernel says it who knows best: of a file in a directory
// that is mounted in another place, in an overlay, in memory, in a long path, and of one removed.
TEST_F(SymbolsTest, ProgramsHaveThePathsThatTheKernelGives) {
  PKPROF_NEEDS("processes that end early");
  namespace fs = std::filesystem;
  const std::string hog = testnet::sibling("pk_hog");
  const std::string base = fs::canonical(fs::path(file_).parent_path());
  for (const char* dir : {"/real", "/bound", "/lower", "/upper", "/work", "/over", "/tmpfs"})
    fs::create_directories(base + dir);
  std::string deep = base;
  for (int i = 0; i < 20; ++i)
    deep += "/a directory of a name that is somewhat long " + std::to_string(i);
  fs::create_directories(deep);
  std::vector<std::string> programs;
  std::vector<std::unique_ptr<Mounted>> mounts;
  const auto add = [&](const std::string& into, const std::string& run_from) {
    fs::copy_file(hog, into + "/pk_hog_copy", fs::copy_options::overwrite_existing);
    programs.push_back(run_from + "/pk_hog_copy");
  };
  mounts.push_back(std::make_unique<Mounted>("tmpfs", base + "/tmpfs", "tmpfs", 0, ""));
  add(base + "/tmpfs", base + "/tmpfs");
  mounts.push_back(std::make_unique<Mounted>(base + "/real", base + "/bound", "", MS_BIND, ""));
  add(base + "/real", base + "/bound");
  add(deep, deep);
  // A kernel without overlays has no containers of that kind.
  if (read_file("/proc/filesystems").find("overlay") != std::string::npos) {
    mounts.push_back(std::make_unique<Mounted>(
        "overlay", base + "/over", "overlay", 0,
        "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"));
    add(base + "/over", base + "/over");
  }
  const std::string doomed = base + "/doomed";
  fs::create_directories(doomed);
  add(doomed, doomed);

  Running recording(pkprof_argv({"record", "-a", "--budget", "100", "-o", file_}));
  std::this_thread::sleep_for(in_guest() ? 8s : 1500ms);
  std::map<int, std::string> truth;
  for (const std::string& program : programs) {
    const int pid = stage_.start(nullptr, {program}, last_cpu(), false);
    if (program.starts_with(doomed)) fs::remove(program);
    std::this_thread::sleep_for(in_guest() ? 3s : 500ms);
    truth[pid] = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe");
  }
  recording.signal(SIGINT);
  ASSERT_EQ(recording.wait(), 0) << recording.err();
  const Report report = read_report(file_);
  for (const auto& [pid, exe] : truth) {
    const Process* process = report.find(pid);
    ASSERT_NE(process, nullptr) << exe;
    EXPECT_EQ(without_remark(process->exe), without_remark(exe));
    const std::string tree = tree_of(file_, pid);
    EXPECT_NE(tree.find("::run(int, char**)"), std::string::npos) << exe << "\n" << tree;
  }
  for (const auto& [pid, exe] : truth) stage_.stop(pid);  // before what they run from goes
}

TEST_F(SymbolsTest, KernelFramesHaveNames) {
  stage_.start(nullptr, {"dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "status=none"}, -1, false);
  record_for(1);
  const std::string tree = tree_of(file_, 0);
  EXPECT_NE(tree.find("do_syscall_64"), std::string::npos);
  EXPECT_NE(tree.find("ksys_read"), std::string::npos);
  EXPECT_NE(tree.find("syscall:read"), std::string::npos);
}

// /proc/kallsyms shows zeros then, to root too; the BPF iterator does not.
TEST_F(SymbolsTest, KernelFramesHaveNamesWhereAddressesAreHidden) {
  const Sysctl hidden("/proc/sys/kernel/kptr_restrict", "2");
  if (!capability_works_now("kernel symbols")) GTEST_SKIP() << "this kernel lacks: iter/ksym";
  stage_.start(nullptr, {"dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "status=none"}, -1, false);
  record_for(1);
  const std::string tree = tree_of(file_, 0);
  EXPECT_NE(tree.find("do_syscall_64"), std::string::npos);
  EXPECT_NE(tree.find("ksys_read"), std::string::npos);
}

// A process with code that is in no file, and a map of it as JIT compilers write one.
class Jitted {
 public:
  Jitted() {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      loop_for_ever();
    }
  }
  ~Jitted() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove(map_of(pid_), ignored);
  }
  Jitted(const Jitted&) = delete;
  Jitted& operator=(const Jitted&) = delete;
  [[nodiscard]] int pid() const { return pid_; }

 private:
  static std::string map_of(int pid) { return "/tmp/perf-" + std::to_string(pid) + ".map"; }

  [[noreturn]] static void loop_for_ever() {
    void* code =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) _exit(1);
    static constexpr unsigned char kLoop[] = {0xf3, 0x90, 0xeb, 0xfc};  // pause; jmp
    std::memcpy(code, kLoop, sizeof kLoop);
    std::ostringstream line;
    line << std::hex << reinterpret_cast<uintptr_t>(code) << " 1000 jitted::endless_loop\n";
    write_file(map_of(getpid()), line.str());
    reinterpret_cast<void (*)()>(code)();
    _exit(1);
  }

  pid_t pid_ = -1;
};

TEST_F(SymbolsTest, JittedCodeHasTheNamesOfItsMap) {
#ifndef __x86_64__
  GTEST_SKIP() << "machine code for x86-64";
#endif
  const Jitted jitted;
  record_for(1);
  const std::string tree = tree_of(file_, jitted.pid());
  EXPECT_NE(tree.find("jitted::endless_loop"), std::string::npos) << tree;
}

}  // namespace
}  // namespace pkprof::live
