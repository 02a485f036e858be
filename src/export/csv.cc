// SPDX-License-Identifier: Apache-2.0
// The ledger's cells as a table (RFC 4180): a line for each who ran, who was served, by what and
// why. All of the time is in it, idle time, too.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "report/clean.h"

namespace pkprof {
namespace {

// What a formula begins with: spreadsheets take wide and small forms of the signs for the signs.
bool begins_formula(std::string_view text) {
  return std::ranges::any_of(
      std::array{"=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−"},
      [text](std::string_view sign) { return text.starts_with(sign); });
}

// What a spreadsheet would take for a formula gets a quote in front, so that it is text. Cells may
// begin where others separate them, too, and behind blanks and quotes.
std::string without_formulas(std::string_view text) {
  std::string out;
  bool begins = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins && begins_formula(text.substr(i))) out += '\'';
    begins = std::string_view(",;|").contains(text[i]) ||
             (begins && std::string_view(" \"'").contains(text[i]));
    out += text[i];
  }
  return out;
}

// In quotes where it has to be.
std::string field(std::string_view raw) {
  std::string text = without_formulas(clean(raw));
  if (text.find_first_of(",;|\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// pid, name, executable, cgroup
std::string party(const Label& label) {
  if (label.kind != LabelKind::process) return "," + field(label.name()) + ",,";
  return label.pid_text() + "," + field(label.host_prefix() + label.comm) + "," + field(label.exe) +
         "," + field(label.cgroup);
}

}  // namespace

static Result<std::string> export_csv(const Profile& profile, const ExportOptions& options) {
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

extern const ExportFormat csv_format{"csv", "a table of who ran, who was served, by what and why",
                                     export_csv};

}  // namespace pkprof
