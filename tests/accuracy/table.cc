// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>

namespace pkprof::accuracy {
namespace {

struct Row {
  std::string scenario;
  live::Shares shares;
  std::optional<double> perf;
  uint64_t samples = 0;
  Limits limits;
  bool met = false;
  std::string remark;
};

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

// One source in all scenarios whose ends are known.
struct Source {
  uint64_t all_ns = 0;
  uint64_t ends_ns = 0;
  uint64_t bystander_ns = 0;
  uint64_t unclaimed_ns = 0;
  uint64_t samples = 0;
  int scenarios = 0;

  [[nodiscard]] double percent(uint64_t ns) const {
    return 100 * static_cast<double>(ns) / static_cast<double>(all_ns);
  }
};

constexpr uint64_t samples_to_tell = 100;  // of a source, to say something about a percent

std::map<std::string, Source>& sources() {
  static std::map<std::string, Source> all;
  return all;
}

void add_sources(const live::Report& report, const Work& work,
                 const std::function<bool(const live::Flow&)>& counts) {
  std::map<std::string, Source> here;
  for (const live::Flow& f : report.flows) {
    if (!counts(f)) continue;
    Source& source = here[f.source];
    source.all_ns += f.ns;
    if (work.ends.contains(f.served)) source.ends_ns += f.ns;
    if (f.served == work.bystander) source.bystander_ns += f.ns;
    if (f.served == live::kUnclaimed) source.unclaimed_ns += f.ns;
  }
  for (const auto& [name, source] : here) {
    Source& sum = sources()[name];
    sum.all_ns += source.all_ns;
    sum.ends_ns += source.ends_ns;
    sum.bystander_ns += source.bystander_ns;
    sum.unclaimed_ns += source.unclaimed_ns;
    sum.samples += report.samples(source.all_ns);
    ++sum.scenarios;
  }
}

// docs/ACCURACY.md, from this run.
void write_page(const char* file) {
  utsname system{};
  uname(&system);
  char today[16];
  const time_t now = time(nullptr);
  strftime(today, sizeof today, "%Y-%m-%d", gmtime(&now));
  std::ofstream out(file);
  out << "# Accuracy\n\nMade by `PKPROF_ACCURACY_PAGE=docs/ACCURACY.md ./test accuracy` on "
      << today << ": Linux " << system.release << ", " << sysconf(_SC_NPROCESSORS_ONLN)
      << " CPUs. All is on, as by default, but at 1997 samples a second or more (hence `--budget "
         "100`); rows of a budget of 1 % are of windows.\n\n"
         "Each scenario has work that is known to be for certain processes (its *ends*), and a "
         "bystander that computes on the CPU where the work lands. Of all asynchronous kernel time "
         "of the source, in percent: what pkprof charged to the ends, to the bystander, to nobody. "
         "What is missing to 100 % is the kernel's own, or was for other processes on the machine. "
         "*Samples* is how much time that was, in samples. The last column is what `perf record "
         "-a` "
         "in the same run puts on the bystander, of the softirq time it saw.\n\n"
         "| source and scenario | ends | bystander | unclaimed | samples | perf: on the bystander "
         "| |\n"
         "|---|---:|---:|---:|---:|---:|---|\n";
  out << std::fixed;
  for (const Row& row : rows()) {
    out << "| " << row.scenario << std::setprecision(2) << " | " << row.shares.ends << " | "
        << row.shares.bystander << " | " << row.shares.unclaimed << " | " << row.samples << " | ";
    if (row.perf) out << std::setprecision(1) << *row.perf;
    out << " | " << (row.met ? "" : "**limit missed** ") << row.remark << " |\n";
  }
  out << "\nThe same by source, of all scenarios together whose ends are known (all but \"all at "
         "once\"), where there are "
      << samples_to_tell
      << " samples of it. What is rare in each scenario is seen here.\n\n"
         "| source | ends | bystander | unclaimed | samples | scenarios |\n"
         "|---|---:|---:|---:|---:|---:|\n";
  for (const auto& [name, source] : sources()) {
    if (source.samples < samples_to_tell) continue;
    out << "| `" << name << "` | " << std::setprecision(2) << source.percent(source.ends_ns)
        << " | " << source.percent(source.bystander_ns) << " | "
        << source.percent(source.unclaimed_ns) << " | " << source.samples << " | "
        << source.scenarios << " |\n";
  }
  out << "\nThe rules are in [ATTRIBUTION.md](ATTRIBUTION.md), the words in "
         "[GLOSSARY.md](GLOSSARY.md), the scenarios in `tests/accuracy`.\n";
}

class Printer : public testing::Environment {
 public:
  void TearDown() override {
    if (rows().empty()) return;
    std::printf(
        "\nAsynchronous kernel time, in percent, and whom it is charged to\n\n%-26s %8s %10s %10s",
        "", "ends", "bystander", "unclaimed");
    std::printf(" %8s   %s\n", "samples", "perf record puts on the bystander");
    for (const Row& row : rows()) {
      std::printf("%-26s %8.2f %10.2f %10.2f %8lu", row.scenario.c_str(), row.shares.ends,
                  row.shares.bystander, row.shares.unclaimed,
                  static_cast<unsigned long>(row.samples));
      if (row.perf)
        std::printf("   %6.1f", *row.perf);
      else
        std::printf("   %6s", "-");
      if (!row.met) std::printf("   MISSED (ends >= %.0f)", row.limits.ends_at_least);
      if (!row.remark.empty()) std::printf("   %s", row.remark.c_str());
      std::printf("\n");
    }
    std::printf("\n");
    for (const auto& [name, source] : sources()) {
      if (source.samples >= samples_to_tell)
        std::printf("%-40s %8.2f %10.2f %10.2f %8lu\n", name.c_str(),
                    source.percent(source.ends_ns), source.percent(source.bystander_ns),
                    source.percent(source.unclaimed_ns),
                    static_cast<unsigned long>(source.samples));
    }
    std::printf("\n");
    if (const char* page = std::getenv("PKPROF_ACCURACY_PAGE")) write_page(page);
  }
};

[[maybe_unused]] const auto* const kPrinter =
    testing::AddGlobalTestEnvironment(new Printer);  // GoogleTest deletes it

}  // namespace

namespace {

std::function<bool(const live::Flow&)> counted_of(const Work& work) {
  if (work.counts) return work.counts;
  if (work.pinned.empty()) return [](const live::Flow& f) { return live::is_network(f.source); };
  return [pinned = work.pinned](const live::Flow& f) { return is_received_elsewhere(f, pinned); };
}

void judge(const std::string& scenario, Observed& seen, const Work& work, const Limits& limits) {
  const auto counts = counted_of(work);
  seen.shares = live::shares_of(seen.report, work.ends, work.bystander, counts);
  Row row{scenario,
          seen.shares,
          seen.perf_on_bystander,
          seen.report.samples(seen.report.sum(counts)),
          limits,
          true,
          {}};
  row.met = seen.shares.ends >= limits.ends_at_least &&
            seen.shares.bystander <= limits.bystander_at_most &&
            seen.shares.unclaimed <= limits.unclaimed_at_most;
  rows().push_back(row);
  if (limits.ends_at_least > 0) add_sources(seen.report, work, counts);
  live::expect_shares(seen.report, seen.shares, limits.ends_at_least, limits.unclaimed_at_most,
                      limits.bystander_at_most);
}

}  // namespace

Observed measure(const std::string& scenario, const Work& work, const Limits& limits,
                 const Amount& amount) {
  const auto counts = counted_of(work);
  PerfBeside perf(amount.seconds);
  Observed seen;
  const bool guest = live::in_guest();
  seen.report = live::observe(
      {.seconds = guest ? std::min(amount.seconds, 1.5) : amount.seconds,
       .frequency_hz = amount.frequency_hz,
       .min_samples = guest ? std::min<uint64_t>(amount.min_samples / 3, 200) : amount.min_samples,
       .budget = amount.budget,
       .most_seconds = guest ? 20.0 : 60.0,
       .counted = [&](const live::Report& r) { return r.sum(counts); }});
  seen.perf_on_bystander = perf.softirq_share({work.bystander}, work.pinned);
  judge(scenario, seen, work, limits);
  return seen;
}

// The command is started when everything is in place, and says so.
Begun::Begun(int seconds, const char* budget) {
  const std::string begun = dir_.file("begun");
  const std::string length = std::to_string(seconds);
  record_.emplace(live::pkprof_argv({"record", "-a", "-F", "1997", "--budget", budget, "-d", length,
                                     "-o", dir_.file("profile"), "--", "sh", "-c",
                                     "touch \"$0\"; exec sleep \"$1\"", begun, length}));
  for (int i = 0; i < 600 && !std::filesystem::exists(begun); ++i) usleep(100'000);
  if (!std::filesystem::exists(begun))
    throw std::runtime_error("no recording began: " + record_->err());
}

live::Report Begun::report() {
  EXPECT_EQ(record_->wait(), 0) << record_->err();
  return live::read_report(dir_.file("profile"));
}

Observed note(const std::string& scenario, live::Report report, const Work& work,
              const Limits& limits) {
  Observed seen;
  seen.report = std::move(report);
  judge(scenario, seen, work, limits);
  return seen;
}

void remark(const std::string& text) {
  if (!rows().empty()) rows().back().remark = text;
}

double show_ratio(const live::Report& report, const std::function<bool(const live::Flow&)>& counts,
                  int one, int other, double truth) {
  const auto charged = [&](int served) {
    return static_cast<double>(
        report.sum([&](const live::Flow& f) { return counts(f) && f.served == served; }));
  };
  const double ratio = charged(one) / std::max(charged(other), 1.0);
  char text[64];
  int n = std::snprintf(text, sizeof text, "ratio %.2f:1", ratio);
  if (truth > 0)
    n += std::snprintf(text + n, sizeof text - static_cast<size_t>(n), ", truth %.2f:1", truth);
  remark(std::string(text, static_cast<size_t>(n)));
  return ratio;
}

void expect_ratio(const live::Report& report, const std::function<bool(const live::Flow&)>& counts,
                  int one, int other, double truth, Time time, uint64_t votes) {
  const double ratio = show_ratio(report, counts, one, other, truth);
  // On an emulated CPU what comes often is cheaper each time than what comes seldom, by far.
  if (live::in_guest()) return;
  const auto samples = [&](int served) {
    const uint64_t ns =
        report.sum([&](const live::Flow& f) { return counts(f) && f.served == served; });
    return std::max(static_cast<double>(report.samples(ns)), 1.0);
  };
  // A tenth, and the standard deviation that so many samples have.
  double variance = 0;
  if (time == Time::sampled) variance += 1 / samples(one) + 1 / samples(other);
  // Each is for one of the two, by chance: twice the deviation, since there are few of them.
  if (votes) variance += 4 * (1 + truth) * (1 + 1 / truth) / static_cast<double>(votes);
  EXPECT_NEAR(ratio, truth, truth / 10 + truth * std::sqrt(variance)) << describe(report);
}

}  // namespace pkprof::accuracy
