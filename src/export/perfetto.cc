// SPDX-License-Identifier: Apache-2.0
// The timeline for Perfetto and chrome://tracing (JSON trace events): for each process how much of
// a CPU it had in each slot, and how much of one was spent for it.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "report/clean.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

using Json = nlohmann::ordered_json;

// Of what is no process, and of processes whose number another had before, or that have none.
constexpr uint32_t first_other = 1U << 30;

class Trace {
 public:
  Trace(const Profile& profile, const ExportOptions& options)
      : profile_(profile), options_(options) {}

  Json run() {
    for (const TimelineCell& cell : profile_.timeline) add(cell);
    Json events = Json::array();
    std::set<uint32_t> numbers;
    for (const auto& [label, counters] : counters_) {
      uint32_t pid = number_of(label);
      if (!numbers.insert(pid).second) pid = first_other + label;
      events.push_back({{"name", "process_name"},
                        {"ph", "M"},
                        {"pid", pid},
                        {"args", {{"name", clean(profile_.labels()[label].name())}}}});
      for (const auto& [name, slots] : counters) put(events, pid, name, slots);
    }
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  }

 private:
  using Series = std::map<std::string, uint64_t>;  // ns
  using Slots = std::map<uint32_t, Series>;

  [[nodiscard]] bool is_wanted(LabelId id) const {
    const Label& label = profile_.labels()[id];
    return options_.pids.empty() ||
           (label.kind == LabelKind::process &&
            std::ranges::find(options_.pids, label.pid) != options_.pids.end());
  }

  void add(const TimelineCell& cell) {
    const SampleKey key{.ran_on = cell.ran_on, .served = cell.served, .source = cell.source};
    const bool process = profile_.labels()[cell.served].kind == LabelKind::process;
    const Part part = part_of(profile_, key);
    if (is_wanted(cell.served)) {
      const char* const series = !process             ? "time"
                                 : part == Part::user ? "user"
                                 : part == Part::own  ? "own kernel"
                                                      : "async kernel";
      counters_[cell.served]["for it"][cell.slot][series] += cell.ns;
      if (process && part == Part::async)
        counters_[cell.served]["async"][cell.slot][clean(profile_.text(cell.source))] += cell.ns;
    }
    if (is_wanted(cell.ran_on) && profile_.labels()[cell.ran_on].kind == LabelKind::process &&
        is_taken(profile_, key))
      counters_[cell.ran_on]["stolen"][cell.slot]["time"] += cell.ns;
  }

  [[nodiscard]] uint32_t number_of(LabelId id) const {
    const Label& label = profile_.labels()[id];
    return label.kind == LabelKind::process && label.pid ? label.pid : first_other + id;
  }

  // A counter keeps its value until the next: each series has one in each slot that any has, and
  // none behind it.
  void put(Json& events, uint32_t pid, const std::string& name, const Slots& slots) const {
    Series none;
    for (const auto& [slot, series] : slots)
      for (const auto& [which, ns] : series) none[which] = 0;
    for (auto it = slots.begin(); it != slots.end(); ++it) {
      Series all = none;
      for (const auto& [which, ns] : it->second) all[which] = ns;
      put(events, pid, name, it->first, all);
      const auto next = std::next(it);
      if (next == slots.end() || next->first != it->first + 1)
        put(events, pid, name, it->first + 1, none);
    }
  }

  void put(Json& events, uint32_t pid, const std::string& name, uint32_t slot,
           const Series& series) const {
    Json args = Json::object();
    const auto length = static_cast<double>(profile_.meta.slot_ns);
    for (const auto& [which, ns] : series) args[which] = 100 * static_cast<double>(ns) / length;
    events.push_back({{"name", name},
                      {"ph", "C"},
                      {"pid", pid},
                      {"ts", static_cast<double>(slot) * length / 1000},
                      {"args", std::move(args)}});
  }

  const Profile& profile_;
  const ExportOptions& options_;
  std::map<LabelId, std::map<std::string, Slots>> counters_;
};

}  // namespace

static Result<std::string> export_perfetto(const Profile& profile, const ExportOptions& options) {
  if (profile.timeline.empty() || !profile.meta.slot_ns)
    return fail("it has no timeline: that is kept by `pkprof record` and `run`");
  return deliver(
      Trace(profile, options).run().dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
      options);
}

// Counters, in percent of one CPU: "for it" with the series user, own kernel and async kernel;
// "async" by source; "stolen". Fails where there is no timeline.
extern const ExportFormat perfetto_format{
    "perfetto", "the timeline, for Perfetto and chrome://tracing", export_perfetto};

}  // namespace pkprof
