// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "model/pprof/pprof.h"

namespace pkprof::scale {
namespace {

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
Result<Json> describe(const RecordOptions& options, const std::string& path,
                      int64_t started_unix_ns) {
  const auto profile = read_profile(path);
  if (!profile) return std::unexpected(profile.error());
  const Meta& meta = profile->meta;
  Json losses = Json::object();
  for (const auto& [name, count] : meta.counters)
    if (count) losses[name] = count;
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
  Json told = options.figures ? options.figures(*profile) : Json::object();
  told.update(
      {{"first sample after, ms",
        (static_cast<double>(meta.start_unix_ns) - static_cast<double>(started_unix_ns)) / 1e6},
       {"processes in the profile", processes},
       {"file, KiB", static_cast<double>(file.st_size) / 1024},
       {"samples lost", meta.samples_lost},
       {"unclaimed, % of all time",
        100 * static_cast<double>(unclaimed) / static_cast<double>(std::max<uint64_t>(ns, 1))},
       {"losses", losses}});
  return told;
}

}  // namespace

void Column::add(const Json& told) {
  for (const auto& [name, value] : told.items())
    if (value.is_number()) figures[name].push_back(value.get<double>());
}

Result<> record_once(const RecordOptions& options, Column& column) {
  const TempFile file;
  const TempFile text;
  std::vector<std::string> words{options.bin + "/pkprof",         "record", "-a",     "-d",
                                 std::to_string(options.seconds), "-o",     file.path};
  words.insert(words.end(), options.more.begin(), options.more.end());
  const auto run = run_program(words);
  if (!run) return std::unexpected(run.error());
  const auto told = in_child([&] { return describe(options, file.path, run->started_unix_ns); });
  if (!told) return std::unexpected(told.error());
  const auto report = run_program({options.bin + "/pkprof", "report", file.path}, text.path);
  if (!report) return std::unexpected(report.error());
  column.losses.update((*told)["losses"]);
  column.add(*told);
  column.add({{"memory of record, MiB", run->rss_mib},
              {"CPU time of record, ms", run->cpu_ms},
              {"from the end to the file, ms", 1e3 * (run->seconds - options.seconds) -
                                                   (*told)["first sample after, ms"].get<double>()},
              {"report, ms", 1e3 * report->seconds},
              {"memory of report, MiB", report->rss_mib}});
  return {};
}

void print_table(const std::string& what, const std::vector<Column>& columns) {
  std::printf("| %s |", what.c_str());
  for (const Column& column : columns) std::printf(" %s |", column.head.c_str());
  std::printf("\n|---|");
  for (size_t i = 0; i < columns.size(); ++i) std::printf("--:|");
  std::puts("");
  for (const auto& [name, values] : columns[0].figures) {
    std::printf("| %s |", name.c_str());
    for (const Column& column : columns) std::printf(" %.1f |", median(column.figures.at(name)));
    std::puts("");
  }
  std::printf("| counters that are not 0 |");
  for (const Column& column : columns)
    std::printf(" %s |", column.losses.empty() ? "none" : column.losses.dump().c_str());
  std::puts("\n");
}

}  // namespace pkprof::scale
