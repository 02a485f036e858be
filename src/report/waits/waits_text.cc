// SPDX-License-Identifier: Apache-2.0
// Times are of all threads together: a process with ten threads that wait waits ten seconds a
// second.
#include "report/waits/waits_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/waits/waits.h"

namespace pkprof {
namespace {

constexpr size_t number_width = 8;
constexpr size_t least_name = 16;
constexpr size_t most_name = 32;
constexpr size_t most_rows = 20;
constexpr size_t most_told = 5;      // waiters that are told in sentences, and reasons of each
constexpr uint64_t least_told = 20;  // of a waiter's waiting, one in so many

struct Column {
  const char* title;
  std::array<std::string_view, 3> kinds;
};

// Together all kinds but those of being idle.
constexpr std::array columns = {
    Column{"RUNNABLE", {"runnable"}},    Column{"DISK", {"disk", "fault", "memory"}},
    Column{"REPLY", {"reply", "child"}}, Column{"LOCK", {"lock"}},
    Column{"EVENT", {"event"}},          Column{"TIMER", {"timer"}},
    Column{"OTHER", {"other"}},
};

// What a reason is, with whom it names.
std::string sentence_of(const std::string& kind, const std::string& whom, bool is_itself) {
  const std::string by_whom = is_itself ? "" : " (" + whom + ")";
  if (kind == "runnable") return "ready to run behind " + (is_itself ? "itself" : whom);
  if (kind == "disk") return "for the disk" + by_whom;
  if (kind == "fault") return "for pages from the disk" + by_whom;
  if (kind == "memory") return "for memory to be freed" + by_whom;
  if (kind == "reply") return "for " + whom;
  if (kind == "child") return "for its child" + by_whom;
  if (kind == "lock") return is_itself ? "for a lock of its own threads" : "for a lock of " + whom;
  if (kind == "event") return is_itself ? "for its own threads" : "for word of " + whom;
  if (kind == "timer") return "for a timer of its own";
  if (kind == "idle") return "for the next request" + by_whom;
  return kind + by_whom;
}

class WaitsText {
 public:
  WaitsText(const Profile& profile, const ReportOptions& options)
      : profile_(profile), options_(options), waits_(waits_of(profile, options.by, options.pids)) {
    const size_t fixed = (columns.size() + 3) * (number_width + 1);
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
    const auto missing = degraded_sentences(profile_, options_.by);
    for (size_t i = 0; i < missing.size(); ++i) {
      if (i == 0) line("\n" + options_.style.bold("Incomplete"));
      line("  - " + options_.style.warning(clean(missing[i], options_.unicode)));
    }
    return std::move(out_);
  }

 private:
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] std::string name_of(GroupId group) const {
    const Group& g = waits_.groups.all()[group];
    if (g.kind == GroupKind::special) switch (profile_.labels()[g.label].kind) {
        case LabelKind::kernel:
          return "the kernel";
        case LabelKind::idle:
          return "an idle CPU that wakes up";
        case LabelKind::unclaimed:
          return "not known";
        default:
          break;
      }
    return party_name(profile_, options_.by, g, options_.unicode);
  }
  static std::string cell(uint64_t ns) {
    return " " + pad_left(ns ? duration_text(ns) : "-", number_width);
  }

  void table() {
    std::string head = pad_right("PROCESS", name_width_) + " " + pad_left("ON CPU", number_width) +
                       " " + pad_left("WAITED", number_width);
    for (const Column& column : columns) head += " " + pad_left(column.title, number_width);
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
    for (const Column& column : columns) {
      uint64_t ns = 0;
      for (const auto& [kind, of_kind] : row.kinds)
        if (!kind.empty() && std::ranges::find(column.kinds, kind) != column.kinds.end())
          ns += of_kind;
      text += cell(ns);
    }
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
                       sentence_of(reason.kind, name_of(reason.whom), reason.whom == row.who);
    if (reason.count)
      text += options_.style.dim(", " + std::to_string(reason.count) + " times, " +
                                 duration_text(reason.ns / reason.count) + " each");
    line(text);
    const auto most = std::ranges::max_element(reason.chains, {}, [](const auto& chain) {
      return chain.first.empty() ? 0 : chain.second;
    });
    if (most == reason.chains.end() || most->first.empty() || most->second * least_told < reason.ns)
      return;
    std::string chain;
    for (const GroupId before : most->first)
      chain += (chain.empty() ? "" : ", and that one by ") + name_of(before);
    line(std::string(number_width + 5, ' ') +
         options_.style.dim(duration_text(most->second) + " of it after being woken by " + chain));
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const Waits waits_;
  std::string out_;
  size_t name_width_ = least_name;
};

}  // namespace

std::string waits_text(const Profile& profile, const ReportOptions& options) {
  return WaitsText(profile, options).run();
}

}  // namespace pkprof
