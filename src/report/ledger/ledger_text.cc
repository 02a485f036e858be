// SPDX-License-Identifier: Apache-2.0
// See ledger_text.h. Percentages are of one CPU, as top(1) has them: the COSTS column adds up to
// CPUs x 100 %, and so does WITH SERVERS. Rows that would be all zeros are one row, so that they
// still do.
#include "report/ledger/ledger_text.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/ledger.h"
#include "report/ledger/ledger_columns.h"
#include "report/user_stacks.h"

namespace pkprof {

namespace {

constexpr size_t pid_width = 7;
constexpr size_t thread_width = 15;  // "1234567/1234567"
constexpr size_t max_group_width = 64;
constexpr size_t max_exe_width = 32;
constexpr size_t max_flows = 10;
constexpr size_t max_details = 10;

// Hex digits by the dozens say no more than their first twelve.
std::string short_ids(const std::string& text, bool unicode) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t digits = std::min(text.find_first_not_of(hex, at), text.size()) - at;
    const size_t others = std::min(text.find_first_of(hex, at), text.size()) - at;
    if (digits >= 40)
      out += text.substr(at, 12) + (unicode ? "…" : "~");
    else
      out += text.substr(at, digits + others);  // one of them is 0
    at += digits + others;
  }
  return out;
}

class LedgerText {
 public:
  LedgerText(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        ledger_(build_ledger(profile, options.pids, options.by)),
        missing_(degraded_sentences(profile, options.by)),
        grouped_(options.by != By::pid && options.by != By::thread),
        id_width_(choose_id_width()),
        columns_(ledger_, id_width_, options.width) {
    choose_widths();
  }

  std::string run() {
    header();
    table();
    flows();
    if (options_.sources || !options_.pids.empty()) details();
    missing();
    return std::move(out_);
  }

 private:
  [[nodiscard]] size_t choose_id_width() const;
  void choose_widths();
  void header();
  void table();
  void process_row(const LedgerRow& row);
  void special_rows();
  void total_row();
  void row(const std::string& id, const std::string& name, const LedgerNumbers& numbers);
  [[nodiscard]] std::string id_of(const LedgerRow& row) const;
  [[nodiscard]] std::string name_of(const LedgerRow& row) const;
  [[nodiscard]] std::string tail_of(const LedgerRow& row) const;
  [[nodiscard]] std::string container_text(const Label& label) const;
  void flows();
  void flow_line(const Flow& flow);
  void details();
  void missing();

  [[nodiscard]] bool is_row(GroupId id) const {
    const Group& group = ledger_.groups[id];
    return group.label != left_out && is_selected(profile_.labels()[group.label], options_.pids);
  }
  [[nodiscard]] std::string party(GroupId id) const {
    return short_ids(party_name(profile_, options_.by, ledger_.groups[id], options_.unicode),
                     options_.unicode);
  }

  // Ends a line, without the spaces that padding left at its end.
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] std::string cleaned(const std::string& raw) const {
    return clean(raw, options_.unicode);
  }
  [[nodiscard]] std::string fitted(const std::string& raw, size_t width) const {
    return fit(cleaned(raw), width, options_.unicode);
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const Ledger ledger_;
  const std::vector<std::string> missing_;
  const bool grouped_;  // rows are groups of processes
  const size_t id_width_;
  const LedgerColumns columns_;
  std::string out_;
  size_t name_width_ = max_name_width;
  size_t exe_width_ = 0;
  size_t cgroup_width_ = 0;
};

size_t LedgerText::choose_id_width() const {
  size_t width = options_.by == By::thread ? thread_width : pid_width;
  for (const LedgerRow& row : ledger_.processes) width = std::max(width, id_of(row).size());
  return width;
}

void LedgerText::choose_widths() {
  const size_t fixed = id_width_ + 1 + columns_.width();
  const size_t left = options_.width > fixed ? options_.width - fixed : 0;
  size_t wanted = max_name_width;
  if (grouped_)
    for (const LedgerRow& row : ledger_.processes)
      wanted = std::clamp(display_width(party(row.group)), wanted, max_group_width);
  name_width_ = std::clamp(left, min_name_width, wanted);
  const size_t extra = left > name_width_ + 2 ? left - name_width_ - 2 : 0;
  if (extra < 12 || (grouped_ && options_.by != By::container)) return;
  exe_width_ = grouped_ ? extra : std::min(extra, max_exe_width);
  if (extra > exe_width_ + 12) cgroup_width_ = extra - exe_width_ - 2;
}

void LedgerText::header() {
  const Meta& meta = profile_.meta;
  const uint64_t cost_ns = meta.cost_kernel_ns + meta.cost_user_ns;
  line(options_.style.bold("For whom was the kernel working?"));
  line("  " + fitted(meta.kernel.empty() ? "unknown kernel" : meta.kernel, 32) + ", " +
       std::to_string(meta.cpus) + (meta.cpus == 1 ? " CPU, " : " CPUs, ") +
       duration_text(meta.duration_ns) + frequency_text(meta) +
       (meta.paused_ns ? ", without " + duration_text(meta.paused_ns) + " of pauses" : ""));
  if (!meta.command.empty())
    line("  command: " + fitted(meta.command, std::max<size_t>(options_.width, 60) - 11));
  line("  samples: " + std::to_string(meta.samples_taken) + " taken, " +
       std::to_string(meta.samples_lost) + " lost");
  if (const std::string stacks = user_stacks_text(meta, std::max<size_t>(options_.width, 60) - 2);
      !stacks.empty())
    line("  " + stacks);
  // Of what another profiler recorded it is not known.
  if (cost_ns && ledger_.cpu_ns)
    line("  pkprof itself: " +
         decimal(100.0 * static_cast<double>(cost_ns) / static_cast<double>(ledger_.cpu_ns), 2) +
         "% of all CPU time (" + duration_text(meta.cost_kernel_ns) + " kernel, " +
         duration_text(meta.cost_user_ns) + " user)");
  if (const std::string watched = watched_text(watched_share(meta)); !watched.empty())
    line("  " + watched);
  if (!missing_.empty() || meta.samples_lost != 0)
    line("  " + options_.style.warning("incomplete: see the end of this report"));
  line("");
}

void LedgerText::row(const std::string& id, const std::string& name, const LedgerNumbers& numbers) {
  // A long name of a row without an id begins where ids are.
  const size_t over = std::max(display_width(name), name_width_) - name_width_;
  out_ += pad_left(id + " ", id_width_ + 1 - over) + pad_right(name, name_width_) +
          columns_.row(numbers, profile_.meta.duration_ns, options_.style);
}

std::string LedgerText::id_of(const LedgerRow& row) const {
  const Group& group = ledger_.groups[row.group];
  if (grouped_) return std::to_string(group.processes.size());
  return id_text(profile_, options_.by, group);
}

// Kernel threads in brackets, as ps(1) has them.
std::string LedgerText::name_of(const LedgerRow& row) const {
  const Group& group = ledger_.groups[row.group];
  const Label& label = profile_.labels()[row.label];
  if (!grouped_) {
    const std::string comm = group.name.empty() ? label.comm : group.name;
    return fitted(label.host_prefix() + (label.kthread ? "[" + comm + "]" : comm), name_width_);
  }
  // The end of a path says more than its beginning.
  const bool path =
      (options_.by == By::cgroup || options_.by == By::exe) && group.kind == GroupKind::member;
  const std::string name = party(row.group);
  return path ? fit_tail(name, name_width_, options_.unicode)
              : fit(name, name_width_, options_.unicode);
}

// What there is to know of a container besides its title.
std::string LedgerText::container_text(const Label& label) const {
  const Container container = container_of(label);
  if (container.id.empty()) return "";
  std::string text = container.runtime.empty() ? "-" : container.runtime;
  text += " " + container.id.substr(0, 12);
  return container.image.empty() ? text : text + " " + container.image;
}

std::string LedgerText::tail_of(const LedgerRow& row) const {
  const Label& label = profile_.labels()[row.label];
  const auto column = [&](const std::string& text, size_t width) {
    return "  " + pad_right(fit_tail(cleaned(text), width, options_.unicode), width);
  };
  std::string tail;
  if (grouped_) {
    const bool known = ledger_.groups[row.group].kind == GroupKind::member;
    if (exe_width_ > 0) tail += column(known ? container_text(label) : "", exe_width_);
    return tail;
  }
  if (exe_width_ > 0) tail += column(label.exe, exe_width_);
  if (cgroup_width_ > 0) tail += column(label.cgroup, cgroup_width_);
  return tail;
}

void LedgerText::process_row(const LedgerRow& ledger_row) {
  row(id_of(ledger_row), name_of(ledger_row), numbers_of(ledger_row));
  line(tail_of(ledger_row));
}

void LedgerText::table() {
  const bool threads = options_.by == By::thread;
  std::string name = "COMM";
  if (grouped_)
    std::ranges::transform(name = to_string(options_.by), name.begin(),
                           [](char c) { return static_cast<char>(std::toupper(c)); });
  std::string head = pad_left(grouped_  ? "PROCS"
                              : threads ? "PID/TID"
                                        : "PID",
                              id_width_) +
                     " " + pad_right(name, name_width_) + columns_.titles();
  if (exe_width_ > 0) head += "  " + pad_right(grouped_ ? "WHAT" : "EXE", exe_width_);
  if (cgroup_width_ > 0) head += "  CGROUP";
  while (head.ends_with(' ')) head.pop_back();
  if (const std::string upper = columns_.upper_titles(); !upper.empty())
    line(options_.style.bold(std::string(id_width_ + 1 + name_width_, ' ') + upper));
  line(options_.style.bold(head));

  const size_t limit = options_.limit == 0 ? SIZE_MAX : options_.limit;
  size_t shown = 0;
  size_t hidden = 0;
  LedgerNumbers rest{};
  for (const LedgerRow& row : ledger_.processes) {
    const bool zero =
        reads_zero(row.costs_ns() + row.stolen_ns + row.by_servers_ns, profile_.meta.duration_ns);
    if (shown < limit && !zero) {
      process_row(row);
      ++shown;
      continue;
    }
    ++hidden;
    add(rest, numbers_of(row));
  }
  if (hidden > 0) {
    row("", fitted("(" + std::to_string(hidden) + " more)", name_width_), rest);
    line("");
  }
  special_rows();
}

void LedgerText::special_rows() {
  const auto special = [&](const std::string& name, uint64_t seems, uint64_t costs,
                           uint64_t for_others = 0, uint64_t by_servers = 0) {
    if (seems == 0 && costs == 0 && by_servers == 0) return;
    const bool squeezed = columns_.shows(LedgerColumn::with_servers);
    row("", fitted(name, name_width_ + (squeezed ? id_width_ : 0)),
        {seems, 0, 0, 0, costs, for_others, costs - for_others + by_servers, 0});
    line("");
  };
  special("kernel", ledger_.kernel_seems_ns, ledger_.kernel_ns);
  special("idle", ledger_.idle_seems_ns, ledger_.idle_ns);
  special("steal", ledger_.steal_seems_ns, ledger_.steal_ns);
  special("other", ledger_.other_seems_ns, ledger_.other_ns, ledger_.other_for_others_ns,
          ledger_.other_by_servers_ns);
  for (const auto& [reason, ns] : ledger_.unclaimed) {
    const bool unsampled = reason == "unsampled";
    special("unclaimed: " + reason, unsampled ? ledger_.unsampled_ns : 0, ns);
  }
  total_row();
  for (const std::string& text : columns_.legend(options_.by))
    line(options_.style.dim("        " + text));
}

void LedgerText::total_row() {
  LedgerNumbers total{};
  for (const LedgerRow& row : ledger_.processes) add(total, numbers_of(row));
  const auto of = [&](LedgerColumn column) -> uint64_t& {
    return total[static_cast<size_t>(column)];
  };
  of(LedgerColumn::seems) = ledger_.sampled_ns + ledger_.unsampled_ns;
  of(LedgerColumn::costs) = ledger_.sum_ns();
  of(LedgerColumn::for_others) += ledger_.other_for_others_ns;
  of(LedgerColumn::with_servers) = ledger_.sum_with_servers_ns();
  row("total",
      std::to_string(profile_.meta.cpus) + (options_.unicode ? " CPUs × 100%" : " CPUs x 100%"),
      total);
  line("");
}

void LedgerText::flow_line(const Flow& flow) {
  constexpr std::string_view verb = " worked for ";
  constexpr size_t percent_width = 8;  // two spaces, "123.4", "%"
  const size_t left = std::max<size_t>(options_.width, 60) - verb.size() - percent_width - 4;
  const size_t name = std::min<size_t>(left / 3, 32);
  const size_t source = std::min<size_t>(left - 2 * name, 32);
  const bool path = options_.by == By::cgroup || options_.by == By::exe;
  const auto party = [&](GroupId id) {
    const std::string title = this->party(id);
    return pad_right(
        path ? fit_tail(title, name, options_.unicode) : fit(title, name, options_.unicode), name);
  };
  const std::string what = pad_right(fitted(profile_.text(flow.source), source), source);
  line("  " + party(flow.ran_on) + std::string(verb) + party(flow.served) + "  " +
       options_.style.source(what) +
       pad_left(percent(flow.ns, profile_.meta.duration_ns) + "%", percent_width));
}

void LedgerText::flows() {
  const auto took = [&](const Flow& flow) {
    if (!options_.pids.empty() && !is_row(flow.ran_on) && !is_row(flow.served)) return false;
    return is_taken(profile_, ledger_, flow);
  };
  size_t shown = 0;
  size_t hidden = 0;
  uint64_t rest = 0;
  for (const Flow& flow : ledger_.flows) {
    if (!took(flow)) continue;
    if (shown == 0 && hidden == 0) {
      line("");
      line(options_.style.bold("Who took from whom"));
    }
    if (shown < max_flows && !reads_zero(flow.ns, profile_.meta.duration_ns)) {
      flow_line(flow);
      ++shown;
    } else {
      ++hidden;
      rest += flow.ns;
    }
  }
  if (hidden > 0)
    line("  (" + std::to_string(hidden) + " more: " + percent(rest, profile_.meta.duration_ns) +
         "%)");
}

// What each selected process was served by, and why we think so; if none were, the first rows.
void LedgerText::details() {
  const size_t most = options_.limit != 0     ? options_.limit
                      : options_.pids.empty() ? max_details
                                              : SIZE_MAX;
  size_t shown = 0;
  for (const LedgerRow& row : ledger_.processes) {
    if (row.costs_ns() == 0) continue;
    if (options_.pids.empty() && reads_zero(row.costs_ns(), profile_.meta.duration_ns)) continue;
    if (++shown > most) return;
    line("");
    line(options_.style.bold("What it was for: ") + party(row.group));
    std::vector<std::pair<uint64_t, std::string>> sources;
    sources.reserve(row.sources.size());
    for (const auto& [source, ns] : row.sources) sources.emplace_back(ns, source);
    std::ranges::stable_sort(sources, std::greater(), &decltype(sources)::value_type::first);
    for (const auto& [ns, source] : sources) {
      line("  " + options_.style.source(pad_right(fitted(source, 40), 40)) +
           pad_left(percent(ns, profile_.meta.duration_ns) + "%", 9));
    }
    std::string basis = "  basis:";
    for (int i = 0; i < basis_count; ++i) {
      if (row.basis[i] != 0)
        basis += " " + std::string(to_string(static_cast<Basis>(i))) + " " +
                 percent(row.basis[i], profile_.meta.duration_ns) + "%";
    }
    line(options_.style.dim(basis));
  }
}

void LedgerText::missing() {
  if (missing_.empty() && profile_.meta.samples_lost == 0) return;
  line("");
  line(options_.style.bold("Incomplete"));
  if (const Meta& meta = profile_.meta; meta.samples_lost != 0) {
    std::string lost = std::to_string(meta.samples_lost) + " samples were lost";
    if (meta.frequency_hz > 1) lost += ": try -F " + std::to_string(meta.frequency_hz / 2);
    line("  - " + options_.style.warning(lost));
  }
  for (const std::string& sentence : missing_)
    line("  - " + options_.style.warning(cleaned(sentence)));
}

}  // namespace

std::string ledger_text(const Profile& profile, const ReportOptions& options) {
  return LedgerText(profile, options).run();
}

}  // namespace pkprof
