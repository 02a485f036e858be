// SPDX-License-Identifier: Apache-2.0
#include "report/degraded.h"

#include "report/clean.h"

namespace pkprof {

std::vector<std::string> degraded_sentences(const Profile& profile, By by) {
  std::vector<std::string> sentences = profile.meta.degraded;
  if (by == By::thread && !has_threads(profile))
    sentences.emplace_back(
        "threads were not recorded (--threads): each process is one row of any thread");
  for (const auto& [name, count] : profile.meta.counters) {
    if (count != 0) sentences.push_back(name + ": " + std::to_string(count));
  }
  return sentences;
}

std::string incomplete_text(const Profile& profile, const ReportOptions& options) {
  std::string text;
  for (const std::string& sentence : degraded_sentences(profile, options.by)) {
    if (text.empty()) text = "\n" + options.style.bold("Incomplete") + "\n";
    text += "  - " + options.style.warning(clean(sentence, options.unicode)) + "\n";
  }
  return text;
}

}  // namespace pkprof
