// SPDX-License-Identifier: Apache-2.0
// Stacks of user code, against what libdwfl makes of the same threads where they stand still.
//
// A thread is stopped at any place of its code. There it is let go and stopped again many times, by
// signals that it never sees: it works in the kernel then, and its user code stays where it is. So
// its samples must have the stack that libdwfl finds.
#include <elfutils/libdwfl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "model/pprof/pprof.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using namespace std::chrono_literals;
// Innermost first; of a caller, within its call. By file and offset: a profile has a file once,
// wherever processes have it.
using Places = std::vector<std::string>;

std::string place_in(const std::string& file, uint64_t offset) {
  char text[24];
  std::snprintf(text, sizeof text, "+0x%lx", offset);
  return file.substr(file.rfind('/') + 1) + text;
}

struct CodeRange {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  std::string file;
};

std::vector<CodeRange> code_of(int pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::vector<CodeRange> all;
  for (std::string line; std::getline(maps, line);) {
    CodeRange range;
    char may[8] = {};
    char file[256] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %255s", &range.start, &range.end, may,
                    &range.offset, file) == 5 &&
        may[2] == 'x') {
      range.file = file;
      all.push_back(range);
    }
  }
  return all;
}

// One thread of another process, stopped now and then.
class StoppedThread {
 public:
  explicit StoppedThread(int pid) : pid_(pid), dwfl_(dwfl_begin(&callbacks())) {
    if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) throw std::runtime_error("ptrace");
    stop();
    if (dwfl_linux_proc_report(dwfl_.get(), pid) != 0 ||
        dwfl_report_end(dwfl_.get(), nullptr, nullptr) != 0 ||
        dwfl_linux_proc_attach(dwfl_.get(), pid, true) != 0)
      throw std::runtime_error(dwfl_errmsg(-1));
    go_on();
  }
  ~StoppedThread() {
    if (ended_) return;
    stop();
    ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  void stop() {
    ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr);
    wait_for_stop();
  }
  void go_on() { ptrace(PTRACE_CONT, pid_, nullptr, nullptr); }
  // Lets it go and stops it so often, while its user code does not go on.
  void work_in_place(int times) {
    for (int i = 0; i < times; ++i) syscall(SYS_tgkill, pid_, pid_, SIGRTMAX - 1);
    for (int i = 0; i < times && !ended_; ++i) {
      go_on();
      wait_for_stop();
    }
  }
  // Empty where libdwfl does not reach the end.
  [[nodiscard]] Places stack() {
    std::vector<uint64_t> all;
    const int result = dwfl_getthread_frames(
        dwfl_.get(), pid_,
        [](Dwfl_Frame* frame, void* to) -> int {
          Dwarf_Addr pc = 0;
          bool is_exact = false;
          if (!dwfl_frame_pc(frame, &pc, &is_exact)) return DWARF_CB_ABORT;
          static_cast<std::vector<uint64_t>*>(to)->push_back(is_exact ? pc : pc - 1);
          return DWARF_CB_OK;
        },
        &all);
    return result == 0 ? places_of(all) : Places();
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  static const Dwfl_Callbacks& callbacks() {
    static const Dwfl_Callbacks all = {.find_elf = dwfl_linux_proc_find_elf,
                                       .find_debuginfo = dwfl_standard_find_debuginfo,
                                       .section_address = nullptr,
                                       .debuginfo_path = nullptr};
    return all;
  }
  Places places_of(const std::vector<uint64_t>& stack) {
    Places places;
    for (const uint64_t address : stack) {
      const auto in = std::ranges::find_if(
          code_, [=](const CodeRange& r) { return address >= r.start && address < r.end; });
      places.push_back(in == code_.end() ? "?"
                                         : place_in(in->file, address - in->start + in->offset));
    }
    return places;
  }
  void wait_for_stop() {
    int status = 0;
    ended_ |= waitpid(pid_, &status, __WALL) != pid_ || !WIFSTOPPED(status);
  }
  struct End {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };

  int pid_;
  bool ended_ = false;
  std::vector<CodeRange> code_ = code_of(pid_);
  std::unique_ptr<Dwfl, End> dwfl_;
};

class UnwindJudgedTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  struct Stacks {
    std::set<Places> right;  // by libdwfl
    int without = 0;         // stops at which it found none
  };
  Stacks stop_at_random(int pid, int stops) {
    Stacks stacks;
    std::mt19937 random(static_cast<uint32_t>(pid));
    std::uniform_int_distribution<int> pause_us(100, 2000);
    StoppedThread thread(pid);
    for (int i = 0; i < stops && !thread.ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us(random)));
      thread.stop();
      Places stack = thread.stack();
      if (stack.empty()) {
        ++stacks.without;
      } else {
        stacks.right.insert(std::move(stack));
        thread.work_in_place(30);
      }
      thread.go_on();
    }
    EXPECT_FALSE(thread.ended());
    return stacks;
  }

  static std::string place_of(const Profile& profile, const Frame& frame) {
    if (frame.mapping == no_mapping) return "?";
    const Mapping& mapping = profile.mappings()[frame.mapping];
    return place_in(mapping.file, frame.address - mapping.start + mapping.offset);
  }
  // Stacks of the samples while the thread stood still, and how many samples each has.
  static std::map<Places, uint64_t> sampled_in_place(const Profile& profile, int pid) {
    std::map<Places, uint64_t> all;
    for (const Profile::Sample& sample : profile.samples()) {
      if (profile.labels()[sample.key.ran_on].pid != static_cast<uint32_t>(pid)) continue;
      bool in_place = false;
      Places user;
      for (const FrameId id : profile.frames_of(sample.key.stack)) {
        const Frame& frame = profile.frames()[id];
        if (frame.kind == FrameKind::user) user.push_back(place_of(profile, frame));
        in_place |= frame.kind == FrameKind::kernel && profile.text(frame.function) == "get_signal";
      }
      if (in_place) all[user] += sample.value.count;
    }
    return all;
  }

  void judge(const char* name, const Argv& argv, const std::function<void()>& load = {}) {
    if (find_program(argv[0]).empty()) GTEST_SKIP() << "needs " << argv[0];
    const int pid = stage_.start(nullptr, argv, -1, false);
    if (load) load();
    std::this_thread::sleep_for(500ms);
    Running record(pkprof_argv(
        {"record", "-a", "--budget", "100", "-F", "10000", "-o", dir_.file("profile.pb.gz")}));
    while (!waits_for_signals(record.pid())) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(500ms);  // tables are made: of ten times as many samples as usual
    const int stops = in_guest() ? 20 : 1000;
    const Stacks stacks = stop_at_random(pid, stops);
    record.signal(SIGINT);
    EXPECT_EQ(record.wait(), 0) << record.err();
    const Profile profile = must(read_profile(dir_.file("profile.pb.gz")));
    uint64_t all = 0;
    uint64_t right = 0;
    std::string text;
    for (const auto& [stack, samples] : sampled_in_place(profile, pid)) {
      all += samples;
      if (stacks.right.contains(stack)) {
        right += samples;
        continue;
      }
      text += std::to_string(samples) + " samples:";
      for (const std::string& place : stack) text += " " + place;
      text += "\n";
    }
    std::printf(
        "%s: %zu stacks in %d stops (%d without), %lu samples, %lu of them as libdwfl has it\n",
        name, stacks.right.size(), stops, stacks.without, all, right);
    EXPECT_LT(stacks.without, stops / 20);
    EXPECT_GE(all, static_cast<uint64_t>(stops) / 2);
    EXPECT_GE(static_cast<double>(right), 0.999 * static_cast<double>(all)) << text;
  }

  TempDir dir_;
  Stage stage_;
};

TEST_F(UnwindJudgedTest, Python) {
  judge("python3",
        {"/usr/bin/python3", "-c",
         "import json\nwhile True: json.loads(json.dumps([{'a': i} for i in range(2000)]))"});
}

TEST_F(UnwindJudgedTest, Perl) {
  judge("perl",
        {"perl", "-e", "my %h; while (1) { $h{$n++ % 1000} .= 'x'; %h = () if $n % 1e6 == 0 }"});
}

TEST_F(UnwindJudgedTest, Sqlite) {
  judge("sqlite3", {"sqlite3", ":memory:",
                    "with recursive c(x) as (select 1 union all select x+1 from c) select "
                    "count(*) from c;"});
}

TEST_F(UnwindJudgedTest, Openssl) {
  judge("openssl", {"openssl", "speed", "-seconds", "60", "rsa2048"});
}

TEST_F(UnwindJudgedTest, Redis) {
  judge("redis-server",
        {"redis-server", "--port", "6391", "--save", "", "--daemonize", "no", "--loglevel",
         "warning"},
        [this] {
          std::this_thread::sleep_for(500ms);
          stage_.start(nullptr,
                       {"redis-benchmark", "-p", "6391", "-q", "-t", "get,lpush,lrange_300", "-n",
                        "100000000"},
                       -1, false);
        });
}

}  // namespace
}  // namespace pkprof::live
