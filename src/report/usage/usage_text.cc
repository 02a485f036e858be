// SPDX-License-Identifier: Apache-2.0
#include "report/usage/usage_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string_view>
#include <vector>

#include "model/merge.h"
#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/usage/usage.h"
#include "report/usage/usage_words.h"
#include "report/view.h"

namespace pkprof {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

class UsageTable {
 public:
  UsageTable(const Profile& profile, const ReportOptions& options, Resource of)
      : profile_(profile),
        options_(options),
        words_(words_of(of)),
        usage_(usage_of(profile, of, options.by, options.pids)) {
    choose_columns();
  }

  std::string run() {
    line(options_.style.bold(words_.question));
    std::string head = pad_right("PROCESS", name_width_);
    for (const std::string& column : columns_)
      head += " " + pad_left(title_of(column), width_of(column));
    if (has_rest_) head += " " + pad_left("OTHER", number_width);
    head += " " + pad_left("ALL", number_width) + " " + pad_left(upper(words_.count), number_width);
    if (is_disk()) {
      head += " " + pad_left("AT DISK", number_width);
      head += " " + pad_left("QUEUED", number_width);
    }
    line(options_.style.bold(head));
    const size_t limit = options_.limit ? options_.limit : most_rows;
    User rest;
    size_t hidden = 0;
    for (const User& row : usage_.rows) {
      if (&row - usage_.rows.data() < static_cast<ptrdiff_t>(limit)) {
        one(name_of(row.who), row);
        continue;
      }
      ++hidden;
      add(rest, row);
    }
    if (hidden) one("(" + std::to_string(hidden) + " more)", rest);
    one("total", usage_.total);
    tell_others();
    tell_locks();
    return out_;
  }

 private:
  static constexpr size_t number_width = 9;
  static constexpr size_t least_name = 16;
  static constexpr size_t most_name = 32;
  static constexpr size_t most_title = 20;
  static constexpr size_t most_rows = 10;
  static constexpr size_t most_told = 3;
  static constexpr uint64_t least_told = 20;  // of a waiter's waiting, one in so many

  [[nodiscard]] bool is_remote(LabelId label) const {
    return profile_.labels()[label].kind == LabelKind::remote;
  }
  [[nodiscard]] bool is_disk() const { return usage_.resource == Resource::disk; }
  static void add(Used& to, const Used& more) {
    to.amount += more.amount;
    to.count += more.count;
    to.time_ns += more.time_ns;
  }
  static void add(User& to, const User& more) {
    add(to.all, more.all);
    for (const auto& [way, used] : more.ways) add(to.ways[way], used);
  }
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] std::string name_of(GroupId group) const {
    return usage_party(profile_, options_.by, usage_.groups.all()[group], options_.unicode);
  }

  // The largest, as many as there is room for; the rest is in one of its own.
  void choose_columns() {
    for (const auto& [way, used] : usage_.total.ways)
      if (used.amount) columns_.push_back(way);
    std::ranges::stable_sort(columns_, std::greater(),
                             [&](const std::string& way) { return usage_.total.ways[way].amount; });
    const size_t others = (is_disk() ? 4 : 2) * (number_width + 1);
    const auto taken = [&] {
      size_t width = others + (has_rest_ ? number_width + 1 : 0);
      for (const std::string& column : columns_) width += 1 + width_of(column);
      return width;
    };
    while (columns_.size() > 1 && least_name + taken() > options_.width) {
      columns_.pop_back();
      has_rest_ = true;
    }
    name_width_ =
        std::clamp(options_.width > taken() ? options_.width - taken() : 0, least_name, most_name);
  }

  // Ways are of a file, and may be anything.
  [[nodiscard]] std::string title_of(const std::string& column) const {
    return upper(fit(clean(column, options_.unicode), most_title, options_.unicode));
  }
  [[nodiscard]] size_t width_of(const std::string& column) const {
    return std::max(display_width(title_of(column)), number_width);
  }
  [[nodiscard]] std::string cell(uint64_t amount, size_t width = number_width) const {
    return " " + pad_left(amount ? amount_text(usage_.resource, amount) : "-", width);
  }

  void one(const std::string& name, const User& row) {
    std::string text = pad_right(fit(name, name_width_, options_.unicode), name_width_);
    uint64_t rest = row.all.amount;
    for (const std::string& column : columns_) {
      const auto it = row.ways.find(column);
      const uint64_t amount = it == row.ways.end() ? 0 : it->second.amount;
      rest -= amount;
      text += cell(amount, width_of(column));
    }
    if (has_rest_) text += cell(rest);
    text += cell(row.all.amount) + " " + pad_left(std::to_string(row.all.count), number_width);
    if (is_disk()) {
      const auto queued = row.ways.find("queued");
      const uint64_t ns = queued == row.ways.end() ? 0 : queued->second.time_ns;
      for (const uint64_t time : {row.all.time_ns, ns})
        text += " " + pad_left(time ? duration_text(time) : "-", number_width);
    }
    line(text);
  }

  // Of locks: who held them; of networks: who is at the other end.
  void tell_others() {
    const bool is_net = usage_.resource == Resource::net;
    for (const User& row : usage_.rows) {
      if (&row - usage_.rows.data() >= static_cast<ptrdiff_t>(most_told)) return;
      std::vector<std::pair<GroupId, uint64_t>> others(row.others.begin(), row.others.end());
      std::ranges::stable_sort(others, std::greater(), &std::pair<GroupId, uint64_t>::second);
      std::string text;
      for (const auto& [other, amount] : others) {
        const Group& g = usage_.groups.all()[other];
        const bool known =
            g.kind != GroupKind::special || (g.label != left_out && is_remote(g.label));
        if (!known || amount * least_told < row.all.amount) continue;
        text += (text.empty() ? "  " + name_of(row.who) + (is_net ? ": " : " waited ") : ", ") +
                amount_text(usage_.resource, amount) + (is_net ? " with " : " for ") +
                (other == row.who ? "itself" : name_of(other));
      }
      if (!text.empty()) line(fit(text, options_.width, options_.unicode));
    }
  }

  // Which, and between whom: the longest, as long as they are a part that matters.
  void tell_locks() {
    constexpr size_t most_locks = 5;
    const auto longest = [&](const std::map<GroupId, uint64_t>& parties) {
      const auto most =
          std::ranges::max_element(parties, {}, &std::pair<const GroupId, uint64_t>::second);
      const bool is_known = usage_.groups.all()[most->first].kind != GroupKind::special;
      return is_known ? name_of(most->first) : "";
    };
    for (size_t i = 0; i < std::min(usage_.locks.size(), most_locks); ++i) {
      const UsedLock& lock = usage_.locks[i];
      if (lock.all.amount * least_told < usage_.total.all.amount) return;
      std::string text = "  " + clean(lock.name, options_.unicode) + " (" +
                         clean(lock.way, options_.unicode) +
                         "): " + amount_text(usage_.resource, lock.all.amount);
      const std::string waiter = longest(lock.waiters), holder = longest(lock.holders);
      if (!waiter.empty()) text += ", most of it by " + waiter;
      if (!holder.empty())
        text += (waiter.empty() ? ", most of it for " : " for ") +
                (holder == waiter ? "itself" : holder);
      line(fit(text, options_.width, options_.unicode));
    }
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const UsageWords words_;
  Usage usage_;
  std::vector<std::string> columns_;
  bool has_rest_ = false;
  size_t name_width_ = least_name;
  std::string out_;
};

}  // namespace

std::string usage_tables(const Profile& profile, const ReportOptions& options) {
  std::string text;
  for (const Resource of : used_resources(profile))
    text += (text.empty() ? "" : "\n") + UsageTable(profile, options, of).run();
  return text;
}

std::string usage_text(const Profile& profile, const ReportOptions& options) {
  std::string text = usage_tables(profile, options);
  if (text.empty())
    text = "Nothing was used, or the recording was made without --resource lock,disk,net,memory\n";
  return text + watched_line(profile, options) + incomplete_text(profile, options);
}

extern const ReportView usage_view{"usage", usage_text, usage_json};

}  // namespace pkprof
