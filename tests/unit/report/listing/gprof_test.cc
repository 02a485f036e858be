// SPDX-License-Identifier: Apache-2.0
// Our call graph beside GNU gprof's: a program with calls that are known is compiled with -pg and
// run; stacks with the same calls are made into a profile. Both listings are read by one reader,
// and must have the same entries, with the same callers, callees and cycles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "model/profile.h"
#include "report/listing/graph_text.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;

// Two cycles, of two and of three; one function that calls itself; one with several callers. It
// runs for some ticks of gprof's clock, however fast the machine: main is in the graph by its time
// alone.
constexpr const char* program = R"(
#include <time.h>
volatile long sink;
static void burn(void) { for (long i = 0; i < 300000; ++i) sink += i; }
void leaf(void) { burn(); }
void odd(int n);
void even(int n) { if (n > 0) odd(n - 1); leaf(); }
void odd(int n) { if (n > 0) even(n - 1); }
void again(int n) { if (n > 0) again(n - 1); else leaf(); }
void three(int n);
void two(int n) { if (n > 0) three(n - 1); }
void one(int n) { if (n > 0) two(n - 1); leaf(); }
void three(int n) { if (n > 0) one(n - 1); if (n > 5) two(n - 2); }
void outer(void) { even(20); leaf(); again(10); }
int main(void) {
  for (int i = 0; i < 3; ++i) outer();
  odd(9);
  one(12);
  do leaf(); while (clock() < CLOCKS_PER_SEC / 5);
  return 0;
}
)";

// Stacks of that program that have all of its calls among them.
const std::vector<std::vector<std::string>> program_stacks = {
    {"main", "leaf", "burn"},
    {"main", "outer", "even", "odd", "even", "leaf", "burn"},
    {"main", "outer", "leaf", "burn"},
    {"main", "outer", "again", "again", "leaf", "burn"},
    {"main", "odd", "even"},
    {"main", "one", "two", "three", "one", "leaf", "burn"},
    {"main", "one", "two", "three", "two", "three"},
};

Profile profile_of_stacks() {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 70'000'000};
  const LabelId label =
      profile.label({.kind = LabelKind::process, .pid = 9, .start_ns = 1, .comm = "known"});
  const MappingId binary = profile.mapping({0, 0x10000, 0, "/bin/known", ""});
  std::map<std::string, uint64_t> addresses;
  for (const auto& stack : program_stacks) {
    std::vector<FrameId> frames;
    for (const std::string& name : stack) {
      const uint64_t address = addresses.try_emplace(name, addresses.size()).first->second;
      frames.push_back(
          profile.frame({FrameKind::user, binary, address, profile.string(name), 0, 0}));
    }
    std::ranges::reverse(frames);
    profile.add({label, label, profile.string("user"), Basis::own, profile.stack(frames)},
                {.count = 10, .ns = 10'000'000});
  }
  return profile;
}

// One entry of a call graph, as gprof lays it out. Numbers of cycles and of entries are not those
// of the other listing, so a function is known by its name and a cycle by its members.
struct Entry {
  std::set<std::string> callers, callees;
  std::string cycle;  // "<cycle 1>"
  bool operator==(const Entry&) const = default;
};
using Entries = std::map<std::string, Entry>;

struct Line {
  std::string name;   // without cycle and number, "" when it has none
  std::string cycle;  // "<cycle 1>"
  bool primary = false;
};

// "[2]  74.5  0.39  0.74  4+69  <cycle 1 as a whole> [2]", "  0.29 0.56  3/4  even <cycle 1> [4]"
Line read_line(const std::string& text) {
  Line line{.primary = text.starts_with("[")};
  const size_t last = text.find_last_of("[(");
  std::string rest = text.substr(0, last == std::string::npos || last == 0 ? text.size() : last);
  while (rest.ends_with(' ')) rest.pop_back();
  const size_t cycle = rest.rfind("<cycle ");
  if (cycle != std::string::npos && rest.ends_with("as a whole>")) {
    line.name = rest.substr(cycle, rest.find(" as a whole") - cycle) + ">";
    return line;
  }
  if (cycle != std::string::npos) {
    line.cycle = rest.substr(cycle);
    rest = rest.substr(0, cycle);
    while (rest.ends_with(' ')) rest.pop_back();
  }
  line.name = rest.substr(rest.rfind(' ') + 1);
  if (line.name.starts_with("u:")) line.name.erase(0, 2);
  return line;
}

Entries read_graph(const std::string& listing) {
  Entries entries;
  std::istringstream in(listing);
  std::string text;
  while (std::getline(in, text) && !text.starts_with("index % time")) continue;
  Entry entry;
  std::string name;
  while (std::getline(in, text)) {
    if (text.starts_with("---")) {
      entries[name] = entry;
      entry = {};
      name.clear();
      continue;
    }
    if (text.empty() || text == "\f") break;
    const Line line = read_line(text);
    if (line.primary) {
      name = line.name;
      entry.cycle = line.cycle;
    } else {
      (name.empty() ? entry.callers : entry.callees).insert(line.name);
    }
  }
  return entries;
}

// With the members of a cycle in place of its number.
Entries by_members(const Entries& entries) {
  std::map<std::string, std::string> title;
  for (const auto& [name, entry] : entries) {
    if (!name.starts_with("<cycle")) continue;
    std::string members = "cycle of";
    for (const std::string& member : entry.callees) members += " " + member;
    title[name] = members;
  }
  Entries renamed;
  for (auto [name, entry] : entries) {
    if (!entry.cycle.empty()) entry.cycle = title[entry.cycle];
    renamed[title.contains(name) ? title[name] : name] = entry;
  }
  return renamed;
}

std::string shell(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
  return output;
}

std::string listing_of_gprof() {
  std::string directory = (fs::temp_directory_path() / "pkprof-gprof-XXXXXX").string();
  EXPECT_NE(mkdtemp(directory.data()), nullptr);
  std::ofstream(directory + "/known.c") << program;
  const std::string cd = "cd " + directory + " && ";
  shell(cd + "gcc-12 -pg -O0 -no-pie -o known known.c && ./known");
  const std::string listing = shell(cd + "gprof -b -q ./known gmon.out");
  fs::remove_all(directory);
  return listing;
}

TEST(Gprof, HasTheSameGraph) {
  const std::string theirs = listing_of_gprof();
  const std::string ours = graph_text(profile_of_stacks(), {.threshold = 0});
  Entries want = by_members(read_graph(theirs));
  Entries got = by_members(read_graph(ours));
  ASSERT_TRUE(want.contains("cycle of even odd")) << theirs;
  ASSERT_TRUE(want.contains("cycle of one three two")) << theirs;
  // The one thing that gprof has nothing like: whom the time was for.
  ASSERT_TRUE(got.contains("known[9]")) << ours;
  EXPECT_EQ(got["known[9]"].callers, std::set<std::string>{"<spontaneous>"});
  EXPECT_EQ(got["main"].callers, std::set<std::string>{"known[9]"});
  got.erase("known[9]");
  got["main"].callers = {"<spontaneous>"};
  for (const auto& [name, entry] : want) {
    EXPECT_EQ(got[name].callers, entry.callers) << name << "\n" << theirs << ours;
    EXPECT_EQ(got[name].callees, entry.callees) << name << "\n" << theirs << ours;
    EXPECT_EQ(got[name].cycle, entry.cycle) << name;
  }
  EXPECT_EQ(got.size(), want.size());
}

}  // namespace
}  // namespace pkprof
