// SPDX-License-Identifier: Apache-2.0
// Times are of all threads together: a process with ten threads that wait waits ten seconds a
// second.
#include "report/waits/waits_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/view.h"
#include "report/waits/wait_words.h"
#include "report/waits/waits.h"

namespace pkprof {
namespace {

constexpr size_t number_width = 8;
constexpr size_t least_name = 16;
constexpr size_t most_name = 32;
constexpr size_t most_rows = 20;
constexpr size_t most_told = 5;      // waiters that are told in sentences, and reasons of each
constexpr uint64_t least_told = 20;  // of a waiter's waiting, one in so many

// What is not in a column of its own is in the last one. Being idle has one in any case.
constexpr const char* other = "OTHER";
const std::map<std::string, const char*, std::less<>> column_of = {
    {"runnable", "RUNNABLE"}, {"disk", "DISK"},   {"fault", "DISK"},
    {"memory", "DISK"},       {"reply", "REPLY"}, {"child", "REPLY"},
    {"lock", "LOCK"},         {"event", "EVENT"}, {"timer", "TIMER"}};
constexpr std::array titles = {"RUNNABLE", "DISK", "REPLY", "LOCK", "EVENT", "TIMER", other};

class WaitsText {
 public:
  WaitsText(const Profile& profile, const ReportOptions& options)
      : profile_(profile), options_(options), waits_(waits_of(profile, options.by, options.pids)) {
    choose_columns();
    const size_t fixed = (columns_.size() + 3) * (number_width + 1);
    name_width_ =
        std::clamp(options.width > fixed ? options.width - fixed : 0, least_name, most_name);
  }

  std::string run() {
    line(options_.style.bold("What did threads wait for, and for whom?"));
    if (waits_.rows.empty()) {
      line("  nobody waited, or the recording was made without --resource wait");
    } else {
      table();
      const size_t told =
          std::min(waits_.rows.size(), options_.pids.empty() ? most_told : SIZE_MAX);
      for (size_t i = 0; i < told; ++i) tell(waits_.rows[i]);
    }
    return out_;
  }

 private:
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] std::string name_of(GroupId group) const {
    return wait_party(profile_, options_.by, waits_.groups.all()[group], options_.unicode);
  }
  [[nodiscard]] std::string_view shown_in(const std::string& kind) const {
    const auto it = column_of.find(kind);
    const std::string_view column = it == column_of.end() ? other : it->second;
    return std::ranges::find(columns_, column) == columns_.end() ? other : column;
  }

  // Those with something in them; as many as there is room for, with the most in them. The roots
  // count: or what the idle poll for would push out what the busy wait for.
  void choose_columns() {
    columns_.assign(titles.begin(), titles.end());
    std::map<std::string_view, uint64_t> sums;
    for (const Waiting& row : waits_.rows)
      for (const auto& [kind, ns] : row.kinds)
        if (!is_idle_wait(kind))
          sums[shown_in(kind)] += static_cast<uint64_t>(std::sqrt(static_cast<double>(ns)));
    std::erase_if(columns_, [&](std::string_view column) { return sums[column] == 0; });
    const size_t room = options_.width > least_name ? options_.width - least_name : 0;
    const size_t most = std::max<size_t>(room / (number_width + 1), 4) - 3;
    while (columns_.size() > most) {
      if (columns_.back() != other) columns_.emplace_back(other);
      columns_.erase(std::ranges::min_element(columns_.begin(), columns_.end() - 1, {},
                                              [&](std::string_view c) { return sums[c]; }));
    }
  }

  static std::string cell(uint64_t ns) {
    return " " + pad_left(ns ? duration_text(ns) : "-", number_width);
  }

  void table() {
    std::string head = pad_right("PROCESS", name_width_) + " " + pad_left("ON CPU", number_width) +
                       " " + pad_left("WAITED", number_width);
    for (const std::string_view column : columns_)
      head += " " + pad_left(std::string(column), number_width);
    line(options_.style.bold(head + " " + pad_left("IDLE", number_width)));
    const size_t limit = options_.limit ? options_.limit : most_rows;
    Waiting rest;
    size_t hidden = 0;
    for (size_t i = 0; i < waits_.rows.size(); ++i) {
      const Waiting& row = waits_.rows[i];
      if (i < limit) {
        one(name_of(row.who), row);
        continue;
      }
      ++hidden;
      rest.cpu_ns += row.cpu_ns;
      rest.wait_ns += row.wait_ns;
      rest.idle_ns += row.idle_ns;
      for (const auto& [kind, ns] : row.kinds) rest.kinds[kind] += ns;
    }
    if (hidden) one("(" + std::to_string(hidden) + " more)", rest);
    line(options_.style.dim("  Times are of all threads of a process together."));
  }

  void one(const std::string& name, const Waiting& row) {
    std::string text = pad_right(fit(name, name_width_, options_.unicode), name_width_) +
                       cell(row.cpu_ns) + cell(row.wait_ns);
    std::map<std::string_view, uint64_t> sums;
    for (const auto& [kind, ns] : row.kinds)
      if (!is_idle_wait(kind)) sums[shown_in(kind)] += ns;
    for (const std::string_view column : columns_) text += cell(sums[column]);
    line(text + cell(row.idle_ns));
  }

  void tell(const Waiting& row) {
    if (row.wait_ns == 0) return;
    line("\n" + options_.style.bold(name_of(row.who)) + " waited " + duration_text(row.wait_ns) +
         ":");
    size_t told = 0;
    uint64_t rest_ns = row.wait_ns;
    for (const WaitReason& reason : row.reasons) {
      if (is_idle_wait(reason.kind) || told >= most_told || reason.ns * least_told < row.wait_ns)
        continue;
      ++told;
      rest_ns -= reason.ns;
      tell(row, reason);
    }
    if (rest_ns) line(pad_left(duration_text(rest_ns), number_width + 2) + " for other things");
  }

  void tell(const Waiting& row, const WaitReason& reason) {
    std::string text = pad_left(duration_text(reason.ns), number_width + 2) + " " +
                       wait_sentence(clean(reason.kind, options_.unicode), name_of(reason.whom),
                                     reason.whom == row.who);
    if (reason.count > 1)
      text += ", " + std::to_string(reason.count) + " times, " +
              duration_text(reason.ns / reason.count) + " each";
    line(fit(text, options_.width, options_.unicode));
    const WakerChain most = main_chain(reason);
    if (most.wakers.empty() || most.ns * least_told < reason.ns) return;
    std::string chain;
    for (const GroupId before : most.wakers)
      chain += (chain.empty() ? "" : ", and that one by ") + name_of(before);
    const std::string indent(number_width + 5, ' ');
    line(fit(indent + duration_text(most.ns) + " of it after being woken by " + chain,
             options_.width, options_.unicode));
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const Waits waits_;
  std::string out_;
  size_t name_width_ = least_name;
  std::vector<std::string_view> columns_;
};

}  // namespace

std::string waits_tables(const Profile& profile, const ReportOptions& options) {
  return WaitsText(profile, options).run();
}

std::string waits_text(const Profile& profile, const ReportOptions& options) {
  return waits_tables(profile, options) + watched_line(profile, options) +
         incomplete_text(profile, options);
}

extern const ReportView waits_view{"waits", waits_text, waits_json};

}  // namespace pkprof
