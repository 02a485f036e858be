// SPDX-License-Identifier: Apache-2.0
#include "report/diff/diff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "model/source.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

// One of the two.
class Side {
 public:
  Side(const Profile& profile, double DiffValue::* member)
      : member_(member),
        seconds_(static_cast<double>(std::max<uint64_t>(profile.meta.duration_ns, 1))) {}

  void add(DiffValue& to, const SampleValue& value) const {
    const double share = static_cast<double>(value.ns) / seconds_;
    to.*member_ += share;
    // So many samples of one length each; what was measured has none, and no chance in it.
    if (value.count) to.variance += share * share / static_cast<double>(value.count);
  }

 private:
  double DiffValue::* member_;
  double seconds_;  // in ns
};

class Differ {
 public:
  Differ(By by, std::span<const uint32_t> pids) : by_(by), pids_(pids) {}

  void add(const Profile& profile, double DiffValue::* member) {
    const Side side(profile, member);
    Groups groups(profile, by_, pids_);
    const FunctionTable table = functions_of(profile);
    uint64_t sampled = 0;
    for (const auto& [whole_key, value] : profile.samples()) {
      SampleKey key = whole_key;
      if (by_ != By::thread) key.thread = key.served_thread = 0;
      const std::string& source = profile.text(key.source);
      if (source == counted_calls) continue;
      sampled += value.ns;
      const Name served = name_of(profile, groups, key.served, key.served_thread);
      const Name ran_on = name_of(profile, groups, key.ran_on, key.thread);
      serve(side, served, part_of(profile, key), value);
      const bool working = is_working(profile.labels()[key.served].kind);
      if (working && source != "user") add_source(side, served, source, value);
      // What one of a group did for a fellow was not taken from the group.
      if (served != ran_on && ran_on.kind != GroupKind::special && is_taken(profile, key))
        side.add(row(ran_on).stolen, value);
      if (working && is_served_to(profile, key, pids_)) run(side, profile, table, key.stack, value);
    }
    if (profile.cpu_ns() > sampled)
      side.add(row({"UNCLAIMED:unsampled", GroupKind::special}).costs,
               {.ns = profile.cpu_ns() - sampled});
  }

  Diff finish() && {
    Diff diff;
    for (auto& [name, row] : rows_) diff.rows.push_back(std::move(row));
    for (auto& [name, source] : sources_) diff.sources.push_back(std::move(source));
    for (auto& [name, function] : functions_) diff.functions.push_back(std::move(function));
    const auto size = [](const DiffValue& value) { return std::abs(value.change()); };
    std::ranges::stable_sort(diff.rows, std::greater(),
                             [&](const DiffRow& r) { return size(r.costs); });
    std::ranges::stable_sort(diff.sources, std::greater(),
                             [&](const DiffSource& s) { return size(s.time); });
    std::ranges::stable_sort(diff.functions, std::greater(),
                             [&](const DiffFunction& f) { return size(f.self); });
    return diff;
  }

 private:
  struct Name {
    std::string text;
    GroupKind kind = GroupKind::special;
    auto operator<=>(const Name&) const = default;
  };

  Name name_of(const Profile& profile, Groups& groups, LabelId id, uint32_t thread) const {
    const Label& label = profile.labels()[id];
    if (label.kind == LabelKind::unclaimed) return {label.name(), GroupKind::special};
    const Group& group = groups.all()[groups.of(id, thread)];
    if (group.label == left_out) return {"OTHER", GroupKind::special};
    return {group_title(profile, by_, group), group.kind};
  }

  DiffRow& row(const Name& name) {
    DiffRow& row = rows_[name];
    row.name = name.text;
    row.kind = name.kind;
    return row;
  }

  void serve(const Side& side, const Name& served, Part part, const SampleValue& value) {
    DiffRow& to = row(served);
    side.add(to.costs, value);
    if (served.kind != GroupKind::special) {
      side.add(part == Part::user ? to.user : part == Part::own ? to.own : to.async, value);
    }
  }

  void add_source(const Side& side, const Name& served, const std::string& source,
                  const SampleValue& value) {
    DiffSource& of = sources_[{served, source}];
    of.name = served.text;
    of.source = source;
    side.add(of.time, value);
  }

  // The function in which it was; what stands between contexts is none.
  void run(const Side& side, const Profile& profile, const FunctionTable& table, StackId stack,
           const SampleValue& value) {
    for (const FrameId frame : profile.frames_of(stack)) {
      const Function& function = table.functions[table.of_frame[frame]];
      if (function.kind == FrameKind::pseudo) continue;
      DiffFunction& to = functions_[{function.name, function.where, function.kind}];
      to.function = function;
      side.add(to.self, value);
      return;
    }
  }

  const By by_;
  const std::span<const uint32_t> pids_;
  std::map<Name, DiffRow> rows_;
  std::map<std::pair<Name, std::string>, DiffSource> sources_;
  std::map<std::tuple<std::string, std::string, FrameKind>, DiffFunction> functions_;
};

}  // namespace

Diff diff_profiles(const Profile& a, const Profile& b, By by, std::span<const uint32_t> pids) {
  Differ differ(by, pids);
  differ.add(a, &DiffValue::a);
  differ.add(b, &DiffValue::b);
  return std::move(differ).finish();
}

}  // namespace pkprof
