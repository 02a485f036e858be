// SPDX-License-Identifier: Apache-2.0
#include "report/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/merge.h"
#include "report/clean.h"
#include "report/ledger.h"

namespace pkprof {

namespace {

double hundredths(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string decimal(double value, int digits) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, "%.*f", digits, value);
  return n > 0 && n < static_cast<int>(sizeof text) ? std::string(text, static_cast<size_t>(n))
                                                    : "?";
}

std::string percent(uint64_t part, uint64_t whole) {
  return decimal(hundredths(part, whole), 1);
}

std::string percent_or_dash(uint64_t part, uint64_t whole) {
  return part == 0 ? "-" : percent(part, whole);
}

bool reads_zero(uint64_t part, uint64_t whole) {
  return percent(part, whole) == "0.0";
}

std::string seconds(uint64_t ns, int digits) {
  return decimal(static_cast<double>(ns) / 1e9, digits);
}

int digits_of_seconds(uint64_t whole) {
  int digits = 6;
  for (uint64_t limit = 10'000'000; digits > 2 && whole >= limit; limit *= 10) --digits;
  return digits;
}

std::string duration_text(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return decimal(value / 1e9, 1) + " s";
  if (ns >= 1'000'000) return decimal(value / 1e6, 1) + " ms";
  if (ns >= 1'000) return decimal(value / 1e3, 0) + " us";
  return std::to_string(ns) + " ns";
}

std::string amount_text(Resource of, uint64_t amount) {
  if (!is_in_bytes(of)) return duration_text(amount);
  constexpr double kilo = 1024;
  auto value = static_cast<double>(amount);
  const char* unit = nullptr;
  for (const char* const larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < kilo) break;
    value /= kilo;
    unit = larger;
  }
  constexpr double three_digits = 100;
  return unit ? decimal(value, value < three_digits ? 1 : 0) + " " + unit
              : std::to_string(amount) + " B";
}

std::string share_text(double share) {
  const double percent = 100 * share;
  if (percent < 9.95) return decimal(percent, 1) + " %";
  return decimal(share < 1 ? std::min(percent, 99.0) : percent, 0) + " %";
}

std::string frequency_text(const Meta& meta) {
  return meta.frequency_hz ? " at " + std::to_string(meta.frequency_hz) + " Hz" : "";
}

std::string watched_text(double share) {
  return share < 1 ? "watched " + share_text(share) + " of the time (--budget)" : "";
}

std::string watched_line(const Profile& profile, const ReportOptions& options) {
  const std::string watched = watched_text(watched_share(profile.meta));
  return watched.empty() ? "" : options.style.dim(watched) + "\n";
}

std::string party_name(const Profile& profile, By by, const Group& group, bool unicode) {
  return clean(group_title(profile, by, group), unicode);
}

bool is_busy(const Profile& profile, const SampleKey& key, const ReportOptions& options) {
  return is_working(profile.labels()[key.served].kind) && is_served_to(profile, key, options.pids);
}

Busy busy_time(const Profile& profile, const ReportOptions& options) {
  Busy busy{.cpu_ns = profile.cpu_ns(),
            .cpus = profile.meta.cpus,
            .duration_ns = profile.meta.duration_ns,
            .watched = watched_share(profile.meta),
            .of = resource_of(profile)};
  for (const auto& [key, value] : profile.samples()) {
    const LabelKind kind = profile.labels()[key.served].kind;
    if (is_busy(profile, key, options))
      busy.busy_ns += value.ns;
    else if (kind == LabelKind::idle)
      busy.idle_ns += value.ns;
    else if (kind == LabelKind::steal)
      busy.steal_ns += value.ns;
    else
      busy.left_out_ns += value.ns;
  }
  const uint64_t sampled = busy.busy_ns + busy.idle_ns + busy.steal_ns + busy.left_out_ns;
  if (sampled < busy.cpu_ns && busy.of == Resource::cpu) busy.unsampled_ns = busy.cpu_ns - sampled;
  return busy;
}

std::string busy_line(const Busy& busy, const ReportOptions& options) {
  std::string line = amount_text(busy.of, busy.busy_ns) + " shown";
  const auto add = [&](uint64_t ns, const char* what) {
    if (ns != 0) line += " + " + amount_text(busy.of, ns) + " " + what;
  };
  add(busy.idle_ns, "idle");
  add(busy.steal_ns, "steal");
  add(busy.left_out_ns, "for others");
  add(busy.unsampled_ns, "unsampled");
  std::string whole = "= " + std::to_string(busy.cpus) +
                      (options.unicode ? " CPUs × " : " CPUs x ") + duration_text(busy.duration_ns);
  if (busy.of == Resource::wait)
    line = duration_text(busy.busy_ns) + " of waiting shown, of all threads,";
  if (busy.of != Resource::cpu) whole = "in " + duration_text(busy.duration_ns);
  const bool fits = line.size() + 1 + display_width(whole) <= options.width;
  std::string text = options.style.dim(line + (fits ? " " : "\n  ") + whole) + "\n";
  if (const std::string watched = watched_text(busy.watched); !watched.empty())
    text += options.style.dim(watched) + "\n";
  return text;
}

}  // namespace pkprof
