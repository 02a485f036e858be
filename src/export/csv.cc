// SPDX-License-Identifier: Apache-2.0
#include "export/csv.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "export/exported_stacks.h"
#include "report/clean.h"

namespace pkprof {
namespace {

// In quotes where it has to be. What a spreadsheet would take for a formula gets a quote in front.
std::string field(std::string_view raw) {
  std::string text = clean(raw);
  if (!text.empty() && std::string_view("=+-@").contains(text.front())) text.insert(0, "'");
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// pid, name, executable, cgroup
std::string party(const Label& label) {
  if (label.kind != LabelKind::process) return "," + field(label.name()) + ",,";
  return label.pid_text() + "," + field(label.comm) + "," + field(label.exe) + "," +
         field(label.cgroup);
}

}  // namespace

Result<std::string> export_csv(const Profile& profile, const ExportOptions& options) {
  const auto is_left_out = [&](LabelId id) {
    const Label& label = profile.labels()[id];
    return !options.pids.empty() && label.kind == LabelKind::process &&
           std::ranges::find(options.pids, label.pid) == options.pids.end();
  };
  constexpr LabelId other = UINT32_MAX;
  std::map<std::tuple<LabelId, LabelId, StringId, Basis>, SampleValue> cells;
  for (const auto& [key, value] : profile.samples())
    cells[{is_left_out(key.ran_on) ? other : key.ran_on,
           is_left_out(key.served) ? other : key.served, key.source, key.basis}] += value;
  std::string text =
      "ran_on_pid,ran_on,ran_on_exe,ran_on_cgroup,served_pid,served,served_exe,served_cgroup,"
      "source,basis,samples,ns\r\n";
  const Label others{.kind = LabelKind::other};
  const auto label_of = [&](LabelId id) -> const Label& {
    return id == other ? others : profile.labels()[id];
  };
  for (const auto& [key, value] : cells) {
    if (!value.ns && !value.count) continue;
    const auto& [ran_on, served, source, basis] = key;
    text += party(label_of(ran_on)) + "," + party(label_of(served)) + "," +
            field(profile.text(source)) + "," + std::string(to_string(basis)) + "," +
            std::to_string(value.count) + "," + std::to_string(value.ns) + "\r\n";
  }
  return deliver(std::move(text), options);
}

}  // namespace pkprof
