// SPDX-License-Identifier: Apache-2.0
#include "agent/figures.h"

#include <algorithm>
#include <utility>

#include "model/merge.h"
#include "report/format.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

constexpr const char* other = "other";
constexpr size_t most_without_series = 100'000;

// One family of figures: its help and its type, and then its lines.
class Family {
 public:
  Family(std::string& out, const char* name, const char* type, const char* help)
      : out_(out), name_(name) {
    out_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  using Labels = std::vector<std::pair<const char*, std::string_view>>;
  void seconds(const Labels& labels, uint64_t ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%llu.%09llu",
                  static_cast<unsigned long long>(ns / 1'000'000'000),
                  static_cast<unsigned long long>(ns % 1'000'000'000));
    line(labels, text);
  }
  void number(const Labels& labels, uint64_t value) { line(labels, std::to_string(value)); }
  void number(const Labels& labels, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    line(labels, text);
  }

 private:
  void line(const Labels& labels, const std::string& value) {
    out_ += name_;
    for (size_t i = 0; i < labels.size(); ++i)
      out_ += (i ? "," : "{") + std::string(labels[i].first) + "=\"" +
              escape_for_figures(labels[i].second) + "\"";
    out_ += (labels.empty() ? " " : "} ") + value + "\n";
  }

  std::string& out_;
  const char* name_;
};

std::string name_of(const Profile& profile, By by, const Group& group) {
  switch (group.kind) {
    case GroupKind::none:
      return "none";
    case GroupKind::unknown:
      return "unknown";
    case GroupKind::kernel_threads:
      return "kernel threads";
    case GroupKind::other_machines:
      return "other machines";
    default:
      return group.name.empty() ? party_name(profile, by, group, true) : group.name;
  }
}

}  // namespace

std::string escape_for_figures(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"')
      text += std::string("\\") + c;
    else if (c == '\n')
      text += "\\n";
    else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      text += '?';
    else
      text += c;
  }
  return text;
}

Figures::Group& Figures::group_of(const std::string& name) {
  if (const auto it = groups_.find(name); it != groups_.end()) return it->second;
  if (groups_.size() < series_) return groups_[name];
  if (without_series_.size() < most_without_series) without_series_.insert(name);
  return groups_[other];
}

void Figures::add(const Profile& profile) {
  const Profile cpu = of_resource(profile, Resource::cpu);
  const Ledger ledger = build_ledger(cpu, {}, by_);
  const std::lock_guard lock(mutex_);
  for (const LedgerRow& row : ledger.processes) {
    Group& group = group_of(name_of(cpu, by_, ledger.groups[row.group]));
    group.user_ns += row.user_ns;
    group.kernel_ns += row.own_ns;
    group.async_ns += row.async_ns;
    group.stolen_ns += row.stolen_ns;
    for (const auto& [source, ns] : row.sources) {
      const bool has_room = sources_.contains(source) || sources_.size() < series_;
      sources_[has_room ? source : other] += ns;
    }
  }
  others_["kernel"] += ledger.kernel_ns;
  others_["idle"] += ledger.idle_ns;
  others_["steal"] += ledger.steal_ns;
  others_["unclaimed"] += ledger.unclaimed_ns();
  for (const auto& [reason, ns] : ledger.unclaimed) unclaimed_[reason] += ns;
  for (const auto& [name, count] : profile.meta.counters) counters_[name] += count;
  cpu_ns_ += ledger.sum_ns();
  recorded_ns_ += profile.meta.duration_ns;
  watched_ns_ += profile.meta.duration_ns - profile.meta.unwatched_ns;
  cost_ns_ += profile.meta.cost_kernel_ns + profile.meta.cost_user_ns;
  samples_ += profile.meta.samples_taken;
  samples_lost_ += profile.meta.samples_lost;
  last_cut_unix_ = static_cast<double>(profile.meta.start_unix_ns + profile.meta.duration_ns) / 1e9;
  ++cuts_;
}

void Figures::count_lost_cut() {
  const std::lock_guard lock(mutex_);
  ++lost_cuts_;
}

std::string Figures::text(const std::vector<SinkState>& sinks) const {
  const std::lock_guard lock(mutex_);
  const std::string by_name(to_string(by_));
  const char* by = by_name.c_str();
  std::string out;
  {
    Family family(out, "pkprof_cpu_seconds_total", "counter",
                  "CPU time by whom it was for: user code, the kernel in its own context, and "
                  "asynchronous work of the kernel.");
    for (const auto& [name, group] : groups_) {
      family.seconds({{by, name}, {"kind", "user"}}, group.user_ns);
      family.seconds({{by, name}, {"kind", "kernel"}}, group.kernel_ns);
      family.seconds({{by, name}, {"kind", "async"}}, group.async_ns);
    }
  }
  {
    Family family(out, "pkprof_stolen_cpu_seconds_total", "counter",
                  "CPU time of others' work that was done while this one was on the CPU.");
    for (const auto& [name, group] : groups_) family.seconds({{by, name}}, group.stolen_ns);
  }
  {
    Family family(
        out, "pkprof_other_cpu_seconds_total", "counter",
        "CPU time that is nobody's: idle, the kernel's own, taken by the host, unclaimed. "
        "With pkprof_cpu_seconds_total it is all of it.");
    for (const auto& [kind, ns] : others_) family.seconds({{"kind", kind}}, ns);
  }
  {
    Family family(out, "pkprof_unclaimed_cpu_seconds_total", "counter",
                  "CPU time of which it is not known whom it was for, by why.");
    for (const auto& [reason, ns] : unclaimed_) family.seconds({{"reason", reason}}, ns);
  }
  {
    Family family(
        out, "pkprof_source_cpu_seconds_total", "counter",
        "CPU time that was for somebody, by the kind of work: user code, a system call, a "
        "softirq. The same time as in pkprof_cpu_seconds_total.");
    for (const auto& [source, ns] : sources_) family.seconds({{"source", source}}, ns);
  }
  Family(out, "pkprof_all_cpu_seconds_total", "counter", "CPUs times time.").seconds({}, cpu_ns_);
  Family(out, "pkprof_recorded_seconds_total", "counter", "Time that was recorded.")
      .seconds({}, recorded_ns_);
  Family(out, "pkprof_watched_seconds_total", "counter",
         "The part of it that the budget left to be watched, and that stands for all.")
      .seconds({}, watched_ns_);
  Family(out, "pkprof_cost_cpu_seconds_total", "counter", "CPU time that pkprof itself took.")
      .seconds({}, cost_ns_);
  Family(out, "pkprof_samples_total", "counter", "Samples taken.").number({}, samples_);
  Family(out, "pkprof_samples_lost_total", "counter", "Samples lost.").number({}, samples_lost_);
  {
    Family family(out, "pkprof_losses_total", "counter",
                  "What could not be kept or done, by what it is.");
    for (const auto& [name, count] : counters_) family.number({{"what", name}}, count);
  }
  Family(out, "pkprof_groups_without_series", "gauge",
         "Groups that are part of \"other\", as there were too many.")
      .number({}, uint64_t{without_series_.size()});
  Family(out, "pkprof_cuts_total", "counter", "Profiles that were cut.").number({}, cuts_);
  Family(out, "pkprof_cuts_lost_total", "counter",
         "Of these, those that the spool had no room for.")
      .number({}, lost_cuts_);
  Family(out, "pkprof_last_cut_timestamp_seconds", "gauge", "When the last one ended.")
      .number({}, last_cut_unix_);
  {
    Family family(out, "pkprof_sink_cuts_sent_total", "counter", "Cuts that a sink has taken.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.sent.sent);
  }
  {
    Family family(out, "pkprof_sink_errors_total", "counter", "Tries to send that failed.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.sent.errors);
  }
  {
    Family family(out, "pkprof_sink_cuts_dropped_total", "counter",
                  "Cuts that a sink will never have, for want of room in the spool.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.waiting.dropped);
  }
  {
    Family family(out, "pkprof_sink_waiting_cuts", "gauge", "Cuts in the spool.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.waiting.cuts);
  }
  {
    Family family(out, "pkprof_sink_waiting_bytes", "gauge", "Bytes of them.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.waiting.bytes);
  }
  {
    Family family(out, "pkprof_sink_last_sent_timestamp_seconds", "gauge",
                  "When the sink took a cut last; 0: never.");
    for (const SinkState& s : sinks) family.number({{"sink", s.name}}, s.sent.last_sent_unix);
  }
  return out;
}

}  // namespace pkprof
