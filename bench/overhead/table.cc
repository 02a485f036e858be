// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "summary.h"
#include "targets.h"

namespace pkprof::overhead {
namespace {

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 400> text = {};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

template <typename Info>
std::vector<Info> collect(const std::vector<Run>& runs, std::vector<Info> RunInfo::* member) {
  std::vector<Info> all;
  for (const Run& run : runs) {
    for (const Info& info : run.info.*member) {
      if (std::ranges::find(all, info.name, &Info::name) == all.end()) all.push_back(info);
    }
  }
  return all;
}

void add_row(std::string& out, const std::string& name, const Spread& s, const std::string& note) {
  out += format("  %-12s %7s   %s - %s   n = %zu%s\n", name.c_str(), three_places(s.median).c_str(),
                three_places(s.low).c_str(), three_places(s.high).c_str(), s.turns, note.c_str());
}

void add_workload(std::string& out, const Summary& summary, const WorkloadInfo& workload, int hz,
                  const std::vector<VariantInfo>& variants) {
  const auto plain = summary.plain(workload.name);
  if (!plain) return;
  out += format("\n%s, %d Hz: %s %s without\n", workload.title.c_str(), hz,
                rate_text(plain->median).c_str(), workload.unit.c_str());
  for (const VariantInfo& variant : variants) {
    const auto ratio = summary.ratio(workload.name, hz, variant.name);
    std::string note;
    for (const Target& target : targets_for(workload.name)) {
      const auto gap = summary.under(workload.name, hz, target.variant, target.reference);
      if (target.variant != variant.name || !gap) continue;
      note += format("; %+.3f to %s (%+.3f ... %+.3f), limit -%.2f: %s", 0 - gap->median,
                     target.reference.c_str(), 0 - gap->to, 0 - gap->from, target.limit,
                     verdict(target, *gap).c_str());
    }
    if (ratio) add_row(out, variant.name, *ratio, note);
  }
}

}  // namespace

std::string three_places(double value) {
  return format("%.3f", value);
}

std::string rate_text(double value) {
  const char* unit = "";
  if (value >= 1e6) {
    value /= 1e6;
    unit = " M";
  } else if (value >= 1e4) {
    value /= 1e3;
    unit = " k";
  }
  const int places = value >= 1000 ? 0 : value >= 10 ? 1 : 2;
  return format("%.*f%s", places, value, unit);
}

std::vector<WorkloadInfo> workloads_of(const std::vector<Run>& runs) {
  return collect(runs, &RunInfo::workloads);
}

std::vector<VariantInfo> variants_of(const std::vector<Run>& runs) {
  return collect(runs, &RunInfo::variants);
}

std::string table_text(const std::vector<Run>& runs) {
  const Summary summary(runs);
  const auto variants = variants_of(runs);
  std::string out =
      "Throughput with : without, median and quartiles over n turns. plain: its own noise, a "
      "slice\n"
      "with those before and after. Limits are what pkprof may be under another, in brackets "
      "where\n"
      "the median of the difference lies with 95 % confidence.\n";
  for (const int hz : summary.frequencies()) {
    for (const WorkloadInfo& workload : workloads_of(runs)) {
      add_workload(out, summary, workload, hz, variants);
    }
  }
  std::map<std::string, std::pair<int, std::string>> failed;
  for (const Run& run : runs) {
    for (const Skip& skip : run.skipped) {
      out += format("\nskipped: %s: %s", skip.name.c_str(), skip.why.c_str());
    }
    for (const Failure& f : run.failures) {
      auto& [count, why] = failed[f.slice.workload + " with " + f.slice.variant];
      ++count;
      why = f.why;
    }
  }
  for (const auto& [where, what] : failed) {
    out += format("\nfailed: %s: %d slices, the last: %s", where.c_str(), what.first,
                  what.second.c_str());
  }
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

}  // namespace pkprof::overhead
