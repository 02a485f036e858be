// SPDX-License-Identifier: Apache-2.0
#include "kernel/online_cpus.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace pkprof {
namespace {

std::string duration(uint64_t ns) {
  std::array<char, 32> text{};
  if (ns < 1'000'000'000)
    std::snprintf(text.data(), text.size(), "%.0f ms", static_cast<double>(ns) / 1e6);
  else
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ns) / 1e9);
  return text.data();
}

// Absences of one kind.
struct Together {
  std::vector<uint32_t> cpus;
  uint64_t away_ns = 0;
  uint64_t first = UINT64_MAX;

  void add(const CpuAbsence& a, uint64_t from, uint64_t until) {
    const uint64_t begin = std::max(a.from, from);
    const uint64_t end = a.end == CpuAbsence::End::sampled ? std::min(a.until, until) : until;
    cpus.push_back(a.cpu);
    away_ns += end > begin ? end - begin : 0;
    first = std::min(first, begin);
  }
  [[nodiscard]] bool is_one() const { return cpus.size() == 1; }
  // "CPU 1 was", "CPUs 1-3 were".
  [[nodiscard]] std::string subject(const char* one, const char* many) {
    std::ranges::sort(cpus);
    const auto again = std::ranges::unique(cpus);
    cpus.erase(again.begin(), again.end());
    return (is_one() ? "CPU " : "CPUs ") + cpu_list(cpus) + " " + (is_one() ? one : many);
  }
};

}  // namespace

std::string cpu_list(std::span<const uint32_t> cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::string> describe(std::span<const CpuAbsence> absences, uint64_t from,
                                  uint64_t until) {
  Together sampled;
  Together away;
  Together gone;      // all the time
  Together left_out;  // of those that are not counted, too
  for (const CpuAbsence& a : absences) {
    if (a.from >= until || (a.end == CpuAbsence::End::sampled && a.until <= from)) continue;
    Together& kind = a.end == CpuAbsence::End::sampled    ? sampled
                     : a.end == CpuAbsence::End::unopened ? left_out
                     : a.from <= from                     ? gone
                                                          : away;
    kind.add(a, from, until);
  }
  std::vector<std::string> sentences;
  if (!sampled.cpus.empty()) {
    std::string text = sampled.subject("was", "were");
    text += " offline for a while: " + duration(sampled.away_ns) + " of CPU time, up to when ";
    text += sampled.is_one() ? "it was" : "they were";
    sentences.push_back(text + " sampled again, are UNCLAIMED: unsampled");
  }
  if (!away.cpus.empty()) {
    std::string text = away.subject("went", "went") + " offline " + duration(away.first - from);
    text += " after the start, and ";
    text += away.is_one() ? "is not sampled any more: its" : "are not sampled any more: their";
    sentences.push_back(text + " time since then, " + duration(away.away_ns) +
                        ", is UNCLAIMED: unsampled");
  }
  if (!gone.cpus.empty())
    sentences.push_back(gone.subject("went", "went") + " offline before this, and " +
                        (gone.is_one() ? "is" : "are") + " left out");
  if (!left_out.cpus.empty())
    sentences.push_back(left_out.subject("was", "were") +
                        " offline at the start, came later, and " +
                        (left_out.is_one() ? "is" : "are") + " left out");
  return sentences;
}

}  // namespace pkprof
