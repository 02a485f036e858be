// SPDX-License-Identifier: Apache-2.0
// Names are hostile. Each of them is every name that a profile has, and goes to every output.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/formats.h"
#include "model/escape.h"
#include "model/merge.h"
#include "report/calls/calls_json.h"
#include "report/calls/calls_text.h"
#include "report/diff/diff_text.h"
#include "report/ledger/ledger_text.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing_json.h"
#include "report/page/page.h"
#include "report/report_json.h"
#include "report/tree/tree_text.h"
#include "report/usage/usage_text.h"
#include "report/waits/waits_text.h"
#include "top/view.h"

namespace pkprof {
namespace {

using namespace std::literals;
namespace fs = std::filesystem;

std::string combining(size_t bytes) {
  std::string name = "a";
  while (name.size() < bytes) name += "\u0301";
  return name;
}

std::vector<std::string> hostile_names() {
  return {"\x1b]0;owned\x07\x1b[2J\x1b[31m",
          "\u009b31m\u0090q",
          "</script><script>alert(1)</script>",
          "<img src=x onerror=alert(1)>&lt;b&gt;",
          "\"><svg onload='alert(1)'>",
          "\u202egpj.exe\u202c\u2066\u200f\u061c",
          "a\u200b\ufeff\u2028b\U000e0041",
          "\xff\xfe\xc3(\xed\xa0\x80\xf8",
          "one\ntwo\r\nthree\ttab\vfeed\f",
          "nul\0nul"s,
          "=1+1",
          "+1+1",
          "-1+1",
          "@SUM(A1)",
          "x;=cmd|'/c calc'!A1",
          "＝1+1",
          "../../../../../../tmp/pkprof-hostile",
          "/etc/passwd",
          "..",
          "$(id)`id`%s%n\\",
          "]]>-->/*",
          combining(4096)};
}

// All that has a name is called so: twice, where it takes two to differ.
Profile profile_of(const std::string& name) {
  Profile profile;
  const std::string twin = name + "2";
  const auto process = [&](uint32_t pid, const std::string& called) {
    const LabelId id =
        profile.label({.kind = LabelKind::process,
                       .pid = pid,
                       .start_ns = pid,
                       .comm = called,
                       .exe = called,
                       .cgroup = called,
                       .container = {called, called, called, called, called, called, called},
                       .host = name});
    profile.name_thread(id, pid, called);
    return id;
  };
  const LabelId a = process(1, name);
  const LabelId b = process(2, twin);
  const LabelId unclaimed = profile.label({.kind = LabelKind::unclaimed, .reason = name});
  const auto frame = [&](FrameKind kind, uint64_t address, const std::string& called) {
    const MappingId mapping = profile.mapping({address, address + 4096, 0, called, "ab", no_vaddr});
    return profile.frame({.kind = kind,
                          .mapping = mapping,
                          .address = address,
                          .function = profile.string(called),
                          .file = profile.string(called),
                          .line = 1});
  };
  const FrameId user = frame(FrameKind::user, 0x1000, name);
  const FrameId kernel = frame(FrameKind::kernel, 0xffffffff81000000, twin);
  const FrameId between =
      profile.frame({.kind = FrameKind::pseudo, .function = profile.string("softirq:" + name)});
  const FrameId stack[] = {kernel, between, user};
  const StringId sources[] = {profile.string(name), profile.string("softirq:" + name),
                              profile.string("irq:" + name), profile.string("syscall:" + name)};
  for (const StringId source : sources)
    for (const LabelId served : {a, b, unclaimed})
      profile.add({.ran_on = a,
                   .served = served,
                   .source = source,
                   .stack = profile.stack(stack),
                   .thread = 1},
                  {.count = 10, .ns = 10'000'000, .calls = 5});
  profile.timeline = {{0, a, b, sources[1], 10'000'000}};
  profile.meta = {.kernel = name,
                  .host = name,
                  .command = name,
                  .cpus = 1,
                  .duration_ns = 1'000'000'000,
                  .frequency_hz = 997,
                  .samples_taken = 120,
                  .counted_functions = 1,
                  .counted_by = name,
                  .slot_ns = 1'000'000'000,
                  .degraded = {name},
                  .counters = {{name, 1}}};
  return profile;
}

// The same, with all resources: devices, ways of use, who woke one and who is at the other end.
Profile recorded_all(const std::string& name) {
  Profile profile = profile_of(name);
  const LabelId a = 1;
  const LabelId unclaimed = 3;
  const LabelId remote =
      profile.label({.kind = LabelKind::remote, .without_pid = true, .comm = name, .reason = name});
  const auto pseudo = [&](const std::string& called) {
    return profile.frame({.kind = FrameKind::pseudo, .function = profile.string(called)});
  };
  for (const Resource resource : every_resource) {
    if (resource == Resource::cpu) continue;
    const std::string source = std::string(to_string(resource)) + ":" + name;
    const FrameId stack[] = {pseudo(name), pseudo(source)};
    const Wakeup wakeup{.label = remote, .stack = profile.stack(stack), .before = {unclaimed}};
    for (const LabelId served : {a, unclaimed})
      profile.add({.ran_on = remote,
                   .served = served,
                   .source = profile.string(source),
                   .stack = profile.stack(stack),
                   .resource = resource,
                   .wakeup = resource == Resource::wait ? profile.wakeup(wakeup) : 0},
                  {.count = 10, .ns = 10'000'000});
  }
  return profile;
}

// Whether a character does something, or hides.
bool acts(char32_t code) {
  constexpr std::pair<char32_t, char32_t> acting[] = {
      {0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},    {0x200b, 0x200f},
      {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
  return std::ranges::any_of(
      acting, [code](const auto& range) { return code >= range.first && code <= range.second; });
}

void expect_harmless_line(std::string_view line) {
  int marks = 0;
  while (!line.empty()) {
    char32_t code = 0;
    const size_t length = utf8_decode(line, &code);
    ASSERT_GT(length, 0U) << "no UTF-8: " << line;
    EXPECT_FALSE(acts(code)) << std::hex << static_cast<uint32_t>(code) << " in " << line;
    marks = code >= 0x300 && code < 0x370 ? marks + 1 : 0;
    EXPECT_LE(marks, 3) << "piled up";
    line.remove_prefix(length);
  }
}

void expect_harmless_text(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) expect_harmless_line(line);
}

size_t count_of(std::string_view what, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string exported_as(const char* format, const Profile& profile) {
  return export_format(format)->write(profile, {}).value();
}

class HostileName : public testing::TestWithParam<std::string> {
 protected:
  const Profile profile_ = profile_of(GetParam());
  const Profile all_ = recorded_all(GetParam());
};

TEST_P(HostileName, InTexts) {
  for (const By by : every_by)
    for (const bool unicode : {true, false}) {
      const ReportOptions how{.width = 120, .unicode = unicode, .by = by, .sources = true};
      for (const std::string& text :
           {ledger_text(profile_, how), flat_text(profile_, how), graph_text(profile_, how),
            tree_text(profile_, how), calls_text(profile_, how), usage_text(all_, how),
            waits_text(all_, how),
            diff_text(profile_, GetParam(), profile_of(GetParam() + "x"), GetParam(), how)}) {
        EXPECT_FALSE(text.empty());
        expect_harmless_text(text);
      }
    }
}

TEST_P(HostileName, InTop) {
  top::View view({});
  view.show(profile_);
  for (const char* keys : {"", "t", "g", "g", "g", "g", "g", "?"}) {
    for (const char* key = keys; *key; ++key)
      view.press({top::Key::Kind::text, std::string(1, *key)});
    for (const bool page : {false, true}) {
      if (page) view.press({top::Key::Kind::enter});
      for (const top::Line& line : view.draw(200, 200).lines)
        for (const top::Span& span : line) expect_harmless_line(span.text);
      if (page) view.press({top::Key::Kind::back});
    }
  }
}

TEST_P(HostileName, InJson) {
  const ReportOptions how;
  for (const std::string& text :
       {report_json(profile_, how), flat_json(profile_, how), graph_json(profile_, how),
        calls_json(profile_, how), usage_json(all_, how), waits_json(all_, how),
        diff_json(profile_, GetParam(), profile_, GetParam(), how), exported_as("json", profile_),
        exported_as("speedscope", profile_), exported_as("firefox", profile_),
        exported_as("json", all_), exported_as("perfetto", profile_)}) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text.substr(0, 200);
    EXPECT_NO_THROW(static_cast<void>(json.dump())) << "no UTF-8";
    for (const char c : text) EXPECT_TRUE(c == '\n' || c < 0 || c >= 0x20);
  }
}

TEST_P(HostileName, InThePage) {
  const std::string plain = page_html(recorded_all("plain"), "plain").value();
  const std::string html = page_html(all_, GetParam()).value();
  for (const char* markup : {"<script", "</script", "<img", "<svg", "<b", "<!--", "]]>"})
    EXPECT_EQ(count_of(markup, html), count_of(markup, plain)) << markup;
}

TEST_P(HostileName, InStacks) {
  const std::string folded = exported_as("folded", profile_);
  expect_harmless_text(folded);
  expect_harmless_text(exported_as("folded", of_resource(all_, Resource::wait)));
  std::istringstream lines(folded);
  for (std::string line; std::getline(lines, line);)
    EXPECT_NE(line.find_last_of(' '), std::string::npos) << line;
  const std::string dot = exported_as("dot", profile_);
  expect_harmless_text(dot);
  for (size_t at = dot.find('"'), end = 0; at != std::string::npos; at = dot.find('"', end + 1)) {
    for (end = at + 1; end < dot.size() && dot[end] != '"'; ++end) end += dot[end] == '\\';
    ASSERT_LT(end, dot.size()) << "a name has no end";
  }
}

TEST_P(HostileName, InATable) {
  std::istringstream rows(exported_as("csv", profile_));
  for (std::string row; std::getline(rows, row);) {
    ASSERT_TRUE(row.ends_with('\r'));
    row.pop_back();
    expect_harmless_line(row);
    for (size_t at = 0; at < row.size(); ++at) {
      if (at > 0 && !",;|\""sv.contains(row[at - 1])) continue;
      for (const char* sign : {"=", "+", "-", "@", "＝"})
        EXPECT_FALSE(std::string_view(row).substr(at).starts_with(sign)) << row;
    }
  }
}

TEST_P(HostileName, InNamesOfFiles) {
  const fs::path outer =
      fs::path(testing::TempDir()) / ("pkprof-names-" + std::to_string(getpid()));
  const fs::path inner = outer / "a" / "b";
  fs::create_directories(inner);
  const auto written = export_format("gmon")->write(profile_, {.output = inner});
  EXPECT_TRUE(written) << written.error().message;
  if (written) expect_harmless_text(*written);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(outer)) {
    if (entry.is_directory()) continue;
    ++files;
    EXPECT_EQ(entry.path().parent_path(), inner) << entry.path();
    expect_harmless_line(entry.path().filename().string());
  }
  EXPECT_GT(files, 4u);
  fs::remove_all(outer);
}

INSTANTIATE_TEST_SUITE_P(All, HostileName, testing::ValuesIn(hostile_names()),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace pkprof
