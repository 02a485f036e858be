// SPDX-License-Identifier: Apache-2.0
// DeBox's traces: a program's calls, with the kernel's functions that they entered. The kernel's
// own function_graph tracer says what is true of the same calls, where entries and exits can be
// attached to; elsewhere the samples must add up to the time that the call took.
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "debox/records.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

constexpr const char* functions =
    "__x64_sys_readv,__x64_sys_writev,__x64_sys_preadv2,__x64_sys_openat2,__x64_sys_read,ksys_read,"
    "vfs_read*,vfs_writev*,do_*readv*,do_*writev*,rw_verify_area,read_iter_zero,"
    "read_zero,pipe_read,pipe_write,do_sys_openat2,do_filp_open,path_openat,vfs_open,"
    "do_dentry_open,schedule";

// A function, and how deep below the first.
struct Entered {
  std::string function;
  size_t depth = 0;
  bool operator==(const Entered&) const = default;
};

void PrintTo(const Entered& e, std::ostream* out) {
  *out << "\n" << std::string(2 * e.depth, ' ') << e.function;
}

// The first call of `root`, with what is in it.
std::vector<Entered> below(const std::vector<Entered>& all, const std::string& root) {
  std::vector<Entered> found;
  for (const Entered& e : all) {
    if (found.empty() && e.function != root) continue;
    if (!found.empty() && e.depth <= found.front().depth) break;
    found.push_back(e);
  }
  const size_t depth = found.empty() ? 0 : found.front().depth;
  for (Entered& e : found) e.depth -= depth;
  return found;
}

// The file system of the kernel's tracers, mounted for us if it is not, and its tracer as it was.
class GraphTracer {
 public:
  static constexpr const char* root = "/sys/kernel/tracing/";

  GraphTracer() {
    if (access((std::string(root) + "current_tracer").c_str(), W_OK))
      mounted_ = mount("tracefs", root, "tracefs", 0, nullptr) == 0;
  }
  ~GraphTracer() {
    for (const auto& [file, text] : {std::pair("tracing_on", "0"),
                                     {"current_tracer", "nop"},
                                     {"set_ftrace_filter", ""},
                                     {"set_ftrace_pid", ""},
                                     {"tracing_on", "1"}})
      write_file(std::string(root) + file, text);
    if (mounted_) umount(root);
  }
  GraphTracer(const GraphTracer&) = delete;
  GraphTracer& operator=(const GraphTracer&) = delete;

  // What the program enters of these functions, in order, with the tracer's own depths.
  static std::vector<Entered> trace(const Argv& argv, const std::string& wanted) {
    const std::string at = root;
    write_file(at + "tracing_on", "0");
    set_filter(wanted);
    write_file(at + "current_tracer", "function_graph");
    write_file(at + "trace_options", "nofuncgraph-irqs");
    write_file(at + "trace_options", "funcgraph-proc");
    Running program(argv, {.before_exec = [at] {
                      write_file(at + "set_ftrace_pid", std::to_string(getpid()));
                      write_file(at + "tracing_on", "1");
                    }});
    EXPECT_EQ(program.wait(), 0);
    write_file(at + "tracing_on", "0");
    return parse(read_file(at + "trace"), program.pid());
  }

 private:
  // The kernel takes a word at a time.
  static void set_filter(const std::string& wanted) {
    std::ofstream filter(std::string(root) + "set_ftrace_filter");
    std::istringstream words(wanted);
    for (std::string word; std::getline(words, word, ',');)
      EXPECT_TRUE(filter << word << '\n' << std::flush) << word;
  }

  // " 0)  comm-123  |   1.5 us    |    vfs_read() {"
  static std::vector<Entered> parse(const std::string& text, pid_t pid) {
    std::vector<Entered> all;
    std::istringstream lines(text);
    const std::string who = "-" + std::to_string(pid) + " ";
    for (std::string line; std::getline(lines, line);) {
      const size_t bar = line.rfind('|');
      const size_t end = line.find("()");
      if (bar == std::string::npos || end == std::string::npos || end < bar || line.find(who) > bar)
        continue;
      const size_t name = line.find_first_not_of(' ', bar + 1);
      if (line[name] == '/' || line[name] == '}') continue;
      all.push_back({line.substr(name, end - name), (name - bar - 3) / 2});
    }
    return all;
  }

  bool mounted_ = false;
};

class DeboxTraceTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { skip_unless_able(); }

  static bool is_exact() { return capability_works("counting calls"); }

  static Records records_of(const std::string& wanted) {
    Argv command{"debox", "--trace", wanted, "--", testnet::sibling("pk_debox"), "--trace"};
    if (GetParam()) command.emplace_back("--all-calls");
    const Finished done = run_pkprof(command);
    EXPECT_EQ(done.status, 0) << done.err << done.out;
    return Records(done.out);
  }

  static std::vector<Entered> entered(const json& said) {
    std::vector<Entered> all;
    for (const json& t : said.at("truth").at("trace"))
      all.push_back({t.at("function"), t.at("depth")});
    return all;
  }

  // Each has a time, which lies in that of the one that it is in.
  static void expect_nested(const json& said) {
    std::vector<json> open;
    for (const json& t : said.at("truth").at("trace")) {
      open.resize(std::min<size_t>(open.size(), t.at("depth")));
      const auto begin = t.at("begin_ns").get<uint64_t>();
      const auto wall = t.at("wall_ns").get<uint64_t>();
      EXPECT_GT(wall, 0) << t;
      if (!open.empty()) {
        const json& outer = open.back();
        EXPECT_GE(begin, outer.at("begin_ns").get<uint64_t>()) << t << outer;
        EXPECT_LE(begin + wall,
                  outer.at("begin_ns").get<uint64_t>() + outer.at("wall_ns").get<uint64_t>())
            << t << outer;
      }
      open.push_back(t);
    }
  }

  Turn turn_;
};

TEST_P(DeboxTraceTest, IsTheKernelsOwn) {
  if (!is_exact()) GTEST_SKIP() << "this kernel lacks: counting calls";
  const Records records = records_of(functions);
  std::vector<Entered> truth;
  {
    const GraphTracer tracer;
    truth = tracer.trace({testnet::sibling("pk_debox"), "--trace"}, functions);
  }
  for (const auto& [what, root] : {std::pair("readv", "__x64_sys_readv"),
                                   {"writev", "__x64_sys_writev"},
                                   {"openat2", "__x64_sys_openat2"},
                                   {"preadv2", "__x64_sys_preadv2"}}) {
    SCOPED_TRACE(what);
    const json said = records.one(what);
    const std::vector<Entered> expected = below(truth, root);
    EXPECT_GT(expected.size(), 2);
    EXPECT_EQ(below(entered(said), root), expected);
    EXPECT_EQ(said.at("truth").at("left_out"), 0);
    EXPECT_EQ(said.at("truth").at("sampled"), false);
    expect_nested(said);
  }
  // The time that it sleeps is that of the function that it sleeps in.
  const json slept = records.one("preadv2");
  uint64_t in_schedule = 0;
  for (const json& t : slept.at("truth").at("trace"))
    if (t.at("function") == "schedule") in_schedule += t.at("wall_ns").get<uint64_t>();
  const json& record = slept.at("record");
  EXPECT_GE(in_schedule, record.at("asleep_ns").get<uint64_t>());
  EXPECT_LE(in_schedule, record.at("wall_ns").get<uint64_t>());
}

TEST_P(DeboxTraceTest, SamplesAddUp) {
  if (is_exact()) GTEST_SKIP() << "entries and exits are better than samples";
  const json said = records_of("*").one("read");
  const json& truth = said.at("truth");
  EXPECT_EQ(truth.at("sampled"), true);
  ASSERT_FALSE(truth.at("trace").empty());
  const std::vector<Entered> all = entered(said);
  EXPECT_TRUE(std::ranges::count(all, "vfs_read", &Entered::function) > 0);
  // Of a virtual machine, a part of the time is not the CPU's.
  const auto on_cpu = said.at("record").at("wall_ns").get<double>() -
                      said.at("record").at("asleep_ns").get<double>() -
                      truth.at("runnable_ns").get<double>();
  double sampled = 0;
  for (const json& t : truth.at("trace"))
    if (t.at("depth") == 0) sampled += t.at("wall_ns").get<double>();
  EXPECT_LE(sampled, 1.05 * on_cpu + 200'000);
  EXPECT_GE(sampled, 0.5 * on_cpu);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i].depth, all[i - 1].depth + 1);
}

INSTANTIATE_TEST_SUITE_P(Modes, DeboxTraceTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "AllCalls" : "Marked"; });

}  // namespace
}  // namespace pkprof::live
