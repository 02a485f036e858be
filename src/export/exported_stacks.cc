// SPDX-License-Identifier: Apache-2.0
#include "export/exported_stacks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>

#include "model/file.h"
#include "report/clean.h"
#include "report/format.h"

namespace pkprof {
namespace {

class Frames {
 public:
  Frames(const Profile& profile, std::vector<ExportedFrame>& frames)
      : profile_(profile), table_(functions_of(profile)), frames_(frames) {}

  std::vector<uint32_t> of(StackId stack, Basis basis, WakeupId wakeup) {
    std::vector<uint32_t> path = frames_of(stack, basis, false);
    if (path.empty()) path.push_back(no_stack());
    if (!wakeup) return path;
    const Wakeup& by = profile_.wakeups()[wakeup];
    path.push_back(woken_by(by.label));
    const std::vector<uint32_t> of_waker = frames_of(by.stack, Basis::own, true);
    path.insert(path.end(), of_waker.begin(), of_waker.end());
    return path;
  }

 private:
  // Root first.
  std::vector<uint32_t> frames_of(StackId stack, Basis basis, bool of_waker) {
    std::vector<uint32_t> path;
    bool said = basis == Basis::own;
    for (const FrameId frame : profile_.frames_of(stack)) {
      const FunctionId function = table_.of_frame[frame];
      const bool says = !said && table_.functions[function].kind == FrameKind::pseudo;
      path.push_back(number(function, says ? basis : Basis::own, of_waker));
      said = said || says;
    }
    std::ranges::reverse(path);
    return path;
  }

  uint32_t woken_by(LabelId waker) {
    const auto [it, fresh] = wakers_.try_emplace(waker, static_cast<uint32_t>(frames_.size()));
    if (fresh) {
      const Function between{.name = "woken by " + profile_.labels()[waker].name(),
                             .where = {},
                             .kind = FrameKind::pseudo};
      frames_.push_back({function_title(between, true), "", FrameKind::pseudo, true});
    }
    return it->second;
  }

  uint32_t no_stack() {
    if (!no_stack_) {
      no_stack_ = static_cast<uint32_t>(frames_.size());
      frames_.push_back({"[no stack]", "", FrameKind::pseudo});
    }
    return *no_stack_;
  }

  // A waker's functions are others than the waiter's: viewers add up each by itself.
  uint32_t number(FunctionId id, Basis basis, bool of_waker) {
    const auto next = static_cast<uint32_t>(frames_.size());
    const auto [it, fresh] = numbers_.try_emplace({id, basis, of_waker}, next);
    if (fresh) {
      const Function& function = table_.functions[id];
      const std::string where = clean(function.where);
      std::string name = function.named || where.empty() ? function_title(function, true)
                                                         : "[unknown in " + where + "]";
      if (basis != Basis::own) name += " (" + std::string(to_string(basis)) + ")";
      frames_.push_back({std::move(name), where, function.kind, of_waker});
    }
    return it->second;
  }

  const Profile& profile_;
  const FunctionTable table_;
  std::vector<ExportedFrame>& frames_;
  std::map<std::tuple<FunctionId, Basis, bool>, uint32_t> numbers_;
  std::map<LabelId, uint32_t> wakers_;
  std::optional<uint32_t> no_stack_;
};

}  // namespace

ExportedStacks export_stacks(const Profile& profile, const ExportOptions& options) {
  ReportOptions selection;
  selection.pids = options.pids;
  std::map<std::tuple<LabelId, StackId, Basis, WakeupId>, uint64_t> sums;
  for (const auto& [key, value] : profile.samples())
    if (value.ns && is_busy(profile, key, selection))
      sums[{options.ran_on ? key.ran_on : key.served, key.stack, key.basis, key.wakeup}] +=
          value.ns;
  ExportedStacks out;
  Frames frames(profile, out.frames);
  // Many addresses are one function: stacks become one.
  std::map<LabelId, std::map<std::vector<uint32_t>, uint64_t>> parties;
  for (const auto& [key, ns] : sums) {
    const auto& [label, stack, basis, wakeup] = key;
    parties[label][frames.of(stack, basis, wakeup)] += ns;
  }
  for (auto& [label, stacks] : parties) {
    ExportedParty& party = out.parties.emplace_back();
    party.name = clean(profile.labels()[label].name());
    for (auto& [path, ns] : stacks) {
      party.ns += ns;
      party.stacks.push_back({path, ns});
    }
    out.ns += party.ns;
  }
  std::ranges::stable_sort(out.parties, std::greater(), &ExportedParty::ns);
  return out;
}

Result<std::string> deliver(std::string text, const ExportOptions& options) {
  if (options.output.empty()) return text;
  if (auto written = write_file(options.output, text); !written)
    return std::unexpected(written.error());
  return "";
}

}  // namespace pkprof
