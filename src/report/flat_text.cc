// SPDX-License-Identifier: Apache-2.0
// See flat_text.h. Time is summed by stack first, so that each stack is walked once.
#include "report/flat_text.h"

#include <algorithm>
#include <tuple>

#include "report/clean.h"
#include "report/format.h"
#include "report/functions.h"

namespace pkprof {

namespace {

struct Row {
  FunctionId function = 0;
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;
};

std::vector<uint64_t> time_by_stack(const Profile& profile, const ReportOptions& options) {
  std::vector<uint64_t> ns(profile.stack_count());
  for (const auto& [key, value] : profile.samples()) {
    if (is_busy(profile, key, options)) ns[key.stack] += value.ns;
  }
  return ns;
}

// One row a function, and one at the end for samples without a stack.
std::vector<Row> rows_of(const Profile& profile, const FunctionTable& table,
                         const ReportOptions& options) {
  std::vector<Row> rows(table.functions.size() + 1);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].function = static_cast<FunctionId>(i);
  std::vector<StackId> last_seen(table.functions.size(), UINT32_MAX);
  const std::vector<uint64_t> ns = time_by_stack(profile, options);
  for (StackId stack = 0; stack < ns.size(); ++stack) {
    if (ns[stack] == 0) continue;
    const auto frames = profile.frames_of(stack);
    if (frames.empty()) {
      rows.back().self_ns += ns[stack];
      rows.back().total_ns += ns[stack];
      continue;
    }
    rows[table.of_frame[frames[0]]].self_ns += ns[stack];
    for (const FrameId frame : frames) {
      const FunctionId function = table.of_frame[frame];
      if (last_seen[function] == stack) continue;
      last_seen[function] = stack;
      rows[function].total_ns += ns[stack];
    }
  }
  std::erase_if(rows, [](const Row& row) { return row.total_ns == 0; });
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    return std::tuple(b.self_ns, b.total_ns) < std::tuple(a.self_ns, a.total_ns);
  });
  return rows;
}

}  // namespace

std::string flat_text(const Profile& profile, const ReportOptions& options) {
  const FunctionTable table = functions_of(profile);
  const std::vector<Row> rows = rows_of(profile, table, options);
  const Busy busy = busy_time(profile, options);
  const size_t name_width = std::max<size_t>(options.width, 60) - 28 - 20;
  const auto numbers = [&](uint64_t self, uint64_t total) {
    return pad_left(percent(self, busy.busy_ns), 6) + " " + pad_left(milliseconds(self), 10) + " " +
           pad_left(total == 0 ? "" : percent(total, busy.busy_ns), 7) + "  ";
  };
  const size_t limit = options.limit == 0 ? SIZE_MAX : options.limit;

  std::string out = options.style.bold(" self%    self ms  total%  " +
                                       pad_right("function", name_width) + "  where") +
                    "\n";
  size_t shown = 0;
  size_t hidden = 0;
  uint64_t rest = 0;
  for (const Row& row : rows) {
    const bool small = reads_zero(row.self_ns, busy.busy_ns) && row.total_ns < busy.busy_ns / 100;
    if (shown == limit || small) {
      ++hidden;
      rest += row.self_ns;
      continue;
    }
    ++shown;
    const bool has_stack = row.function < table.functions.size();
    const Function none{.name = "[no stack]"};
    const Function& function = has_stack ? table.functions[row.function] : none;
    const std::string title = pad_right(
        fit(function_title(function, options.unicode), name_width, options.unicode), name_width);
    const bool pseudo = function.kind == FrameKind::pseudo;
    const std::string where = fit(clean(function.where, options.unicode), 18, options.unicode);
    std::string line = numbers(row.self_ns, row.total_ns) +
                       (pseudo ? options.style.source(title) : title) + "  " + where;
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  if (hidden > 0) out += numbers(rest, 0) + "(" + std::to_string(hidden) + " more functions)\n";
  return out + "\n" + busy_line(profile, busy, options);
}

}  // namespace pkprof
