// SPDX-License-Identifier: Apache-2.0
#include "live.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "collect/facts.h"
#include "collect/kernel_side.h"
#include "crowd.h"
#include "model/pprof.h"
#include "process.h"

namespace pkprof::scale {
namespace {

using Figures = std::map<std::string, std::vector<double>>;  // by name, one for each round

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string temporary_file() {
  char name[] = "/tmp/pkprof-scale-XXXXXX";
  const int fd = mkstemp(name);
  if (fd >= 0) close(fd);
  return name;
}

// A file that is gone with this object.
struct TempFile {
  TempFile() = default;
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { unlink(path.c_str()); }
  std::string path = temporary_file();
};

// What a recording says of itself.
Result<Json> describe(const std::string& path, int64_t started_unix_ns) {
  const auto profile = read_profile(path);
  if (!profile) return std::unexpected(profile.error());
  const Meta& meta = profile->meta;
  uint64_t uncounted = meta.samples_lost;
  Json losses = Json::object();
  for (const auto& [name, count] : meta.counters)
    if (count) losses[name] = count;
  std::map<LabelId, uint64_t> by_label;
  uint64_t ns = 0;
  uint64_t unclaimed = 0;
  for (const auto& sample : profile->samples()) {
    ns += sample.value.ns;
    const Label& label = profile->labels()[sample.key.served];
    if (label.kind == LabelKind::unclaimed) unclaimed += sample.value.ns;
  }
  const auto processes = std::ranges::count(profile->labels(), LabelKind::process, &Label::kind);
  struct stat file{};
  stat(path.c_str(), &file);
  return Json{
      {"first sample after, ms",
       (static_cast<double>(meta.start_unix_ns) - static_cast<double>(started_unix_ns)) / 1e6},
      {"processes in the profile", processes},
      {"file, KiB", static_cast<double>(file.st_size) / 1024},
      {"samples lost", uncounted},
      {"unclaimed, % of all time",
       100 * static_cast<double>(unclaimed) / static_cast<double>(std::max<uint64_t>(ns, 1))},
      {"losses", losses}};
}

Result<> record_once(const LiveOptions& options, Figures& figures, Json& losses) {
  const TempFile file;
  const TempFile text;
  const auto run = run_program({options.bin + "/pkprof", "record", "-a", "-d",
                                std::to_string(options.seconds), "-o", file.path});
  if (!run) return std::unexpected(run.error());
  const auto told = in_child([&] { return describe(file.path, run->started_unix_ns); });
  if (!told) return std::unexpected(told.error());
  const auto report = run_program({options.bin + "/pkprof", "report", file.path}, text.path);
  if (!report) return std::unexpected(report.error());
  for (const auto& [name, value] : told->items())
    if (value.is_number()) figures[name].push_back(value.get<double>());
  losses.update((*told)["losses"]);
  figures["memory of record, MiB"].push_back(run->rss_mib);
  figures["CPU time of record, ms"].push_back(run->cpu_ms);
  figures["from the end to the file, ms"].push_back(
      1e3 * (run->seconds - options.seconds) - (*told)["first sample after, ms"].get<double>());
  figures["report, ms"].push_back(1e3 * report->seconds);
  figures["memory of report, MiB"].push_back(report->rss_mib);
  return {};
}

// Asking the kernel for sockets' owners, alone: an empty recording that asks once more.
Result<Json> time_of_asking() {
  const auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  auto kernel = KernelSide::load(*facts, {});
  if (!kernel) return std::unexpected(kernel.error());
  const double before = now_ms();
  if (!kernel->ask_owners()) return fail("this kernel does not tell who holds a socket");
  return Json{{"asking for owners, ms", now_ms() - before},
              {"owners without room", kernel->owners_without_room()}};
}

void print_table(const std::string& what, const std::vector<uint32_t>& counts,
                 std::vector<Figures>& all, const std::vector<Json>& losses) {
  std::printf("| %s |", what.c_str());
  for (const uint32_t count : counts) std::printf(" %u |", count);
  std::puts("\n|---|--:|--:|");
  for (const auto& [name, values] : all[0]) {
    std::printf("| %s |", name.c_str());
    for (Figures& figures : all) std::printf(" %.1f |", median(figures[name]));
    std::puts("");
  }
  std::printf("| counters that are not 0 |");
  for (const Json& l : losses) std::printf(" %s |", l.empty() ? "none" : l.dump().c_str());
  std::puts("\n");
}

using StartCrowd = std::function<Result<Crowd>(uint32_t)>;

Result<> compare(const LiveOptions& options, const std::string& what, uint32_t many, bool ask,
                 const StartCrowd& start) {
  const std::vector<uint32_t> counts{options.few, many};
  std::vector<Figures> figures(counts.size());
  std::vector<Json> losses(counts.size(), Json::object());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto crowd = start(counts[i]);
      if (!crowd) return std::unexpected(crowd.error());
      sleep(2);  // until what starting them left to do is done
      if (auto r = record_once(options, figures[i], losses[i]); !r) return r;
      if (!ask) continue;
      const auto asked = in_child(time_of_asking);
      if (!asked) return std::unexpected(asked.error());
      for (const auto& [name, value] : asked->items())
        figures[i][name].push_back(value.get<double>());
    }
  }
  print_table(what, counts, figures, losses);
  return {};
}

}  // namespace

Result<> record_processes(const LiveOptions& options) {
  return compare(options, "processes", options.processes, false, Crowd::processes);
}

Result<> record_sockets(const LiveOptions& options) {
  return compare(options, "sockets", options.sockets, true,
                 [&](uint32_t count) { return Crowd::sockets(count, options.packets); });
}

}  // namespace pkprof::scale
