// SPDX-License-Identifier: Apache-2.0
#include "report/user_stacks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/format.h"

namespace pkprof {

std::string user_stacks_text(const Meta& meta, size_t width) {
  constexpr double least_percent = 0.05;
  uint64_t all = 0;
  uint64_t whole = 0;
  std::vector<std::pair<uint64_t, std::string>> cut;
  for (const auto& [end, samples] : meta.user_stacks) {
    all += samples;
    if (end == whole_stack)
      whole += samples;
    else
      cut.emplace_back(samples, end);
  }
  if (!all) return "";
  const auto percent = [all](uint64_t samples) {
    return 100.0 * static_cast<double>(samples) / static_cast<double>(all);
  };
  std::string text = "user stacks: " + decimal(percent(whole), 1) + "% whole";
  std::ranges::stable_sort(cut, std::ranges::greater(), &std::pair<uint64_t, std::string>::first);
  std::string before = "; cut: ";
  for (const auto& [samples, why] : cut) {
    if (percent(samples) < least_percent) break;
    std::string reason = before;
    reason.append(decimal(percent(samples), 1)).append("% ").append(why);
    if (text.size() + reason.size() > width) break;
    text += reason;
    before = ", ";
  }
  return text;
}

}  // namespace pkprof
