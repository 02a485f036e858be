// SPDX-License-Identifier: Apache-2.0
// See calls_text.h. What was missed is said below the table, as of every report.
#include "report/calls/calls_text.h"

#include <algorithm>

#include "report/calls/calls.h"
#include "report/calls/calls_json.h"
#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "report/view.h"

namespace pkprof {

namespace {

constexpr size_t count_width = 12;

class CallsText {
 public:
  CallsText(const Profile& profile, const ReportOptions& options)
      : profile_(profile), options_(options), counts_(count_calls(profile, options)) {
    const size_t limit = options.limit ? options.limit : counts_.rows.size();
    shown_ = std::min(limit, counts_.rows.size());
    set_widths();
  }

  std::string run() {
    head();
    if (shown_) line(options_.style.bold(row("CALLS", "FOR", "FUNCTION", "CALLER")));
    for (size_t i = 0; i < shown_; ++i) {
      const CallsRow& r = counts_.rows[i];
      line(row(std::to_string(r.calls), served(r), function(r.function), function(r.caller)));
    }
    rest();
    missing();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string function(FunctionId id) const {
    if (id == UINT32_MAX) return "?";
    return function_title(counts_.table.functions[id], options_.unicode);
  }
  [[nodiscard]] std::string served(const CallsRow& r) const {
    return clean(counts_.served(profile_, options_.by, r), options_.unicode);
  }

  // As wide as what is shown, where the terminal leaves as much: of whom it is for the first 24
  // columns, and of what is left the function gets a half at least.
  void set_widths() {
    size_t caller = caller_width_;
    for (size_t i = 0; i < shown_; ++i) {
      const CallsRow& r = counts_.rows[i];
      served_width_ = std::max(served_width_, display_width(served(r)));
      function_width_ = std::max(function_width_, display_width(function(r.function)));
      caller = std::max(caller, display_width(function(r.caller)));
    }
    served_width_ = std::min<size_t>(served_width_, 24);
    const size_t taken = count_width + served_width_ + 6;
    const size_t left = std::max<size_t>(options_.width, taken + 24) - taken;
    caller_width_ = std::min(caller, std::max(left / 2, left - std::min(left, function_width_)));
    function_width_ = std::min(function_width_, left - caller_width_);
  }

  [[nodiscard]] std::string row(const std::string& calls, const std::string& whom,
                                const std::string& what, const std::string& from) const {
    const auto field = [&](const std::string& text, size_t width) {
      return pad_right(fit(text, width, options_.unicode), width);
    };
    return pad_left(calls, count_width) + "  " + field(whom, served_width_) + "  " +
           field(what, function_width_) + "  " + fit(from, caller_width_, options_.unicode);
  }

  void line(const std::string& text) { out_ += text + "\n"; }

  void head() {
    const Meta& meta = profile_.meta;
    if (!meta.counted_functions) {
      line("No calls were counted in this profile: see pkprof calls");
      return;
    }
    const uint64_t never =
        meta.counted_functions - std::min<uint64_t>(meta.counted_functions, counts_.functions);
    std::string text = std::to_string(counts_.calls) + " calls of " +
                       std::to_string(meta.counted_functions) +
                       (meta.counted_functions == 1 ? " function" : " functions");
    // What others called is not shown by function.
    if (never && !counts_.left_out) text += " (" + std::to_string(never) + " of them never called)";
    line(text + " in " + duration_text(meta.duration_ns) + ", counted by " +
         clean(meta.counted_by, options_.unicode));
    if (!meta.command.empty())
      line("command: " + fit(clean(meta.command, options_.unicode),
                             std::max<size_t>(options_.width, 60) - 9, options_.unicode));
    if (const std::string watched = watched_text(watched_share(meta)); !watched.empty())
      line(watched);
    const uint64_t cost = meta.cost_kernel_ns + meta.cost_user_ns;
    if (profile_.cpu_ns())
      line("pkprof itself: " +
           decimal(100.0 * static_cast<double>(cost) / static_cast<double>(profile_.cpu_ns()), 2) +
           "% of all CPU time");
    line("");
  }

  void rest() {
    uint64_t calls = 0;
    for (size_t i = shown_; i < counts_.rows.size(); ++i) calls += counts_.rows[i].calls;
    if (calls)
      line(pad_left(std::to_string(calls), count_width) + "  (" +
           std::to_string(counts_.rows.size() - shown_) + " more)");
    if (counts_.left_out)
      line(pad_left(std::to_string(counts_.left_out), count_width) + "  for others");
  }

  void missing() {
    const std::vector<std::string> sentences = degraded_sentences(profile_, options_.by);
    if (sentences.empty()) return;
    line("");
    line(options_.style.bold("Incomplete"));
    for (const std::string& sentence : sentences)
      line("  - " + options_.style.warning(clean(sentence, options_.unicode)));
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const CallCounts counts_;
  std::string out_;
  size_t shown_ = 0;
  size_t served_width_ = 3;
  size_t function_width_ = 8;
  size_t caller_width_ = 6;
};

}  // namespace

std::string calls_text(const Profile& profile, const ReportOptions& options) {
  return CallsText(profile, options).run();
}

extern const ReportView calls_view{"calls", calls_text, calls_json};

}  // namespace pkprof
