// SPDX-License-Identifier: Apache-2.0
#include "agent/files_sink.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "agent/spool.h"
#include "model/file.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_of_a_cut = size_t{1} << 30;

// "web1-1796000000.250000000-BOOT.pb.gz" of the spool's name, which begins with the time.
std::string name_of(const CutFile& cut) {
  std::string host = cut.host;
  std::ranges::replace(host, '/', '_');
  constexpr uint64_t second_ns = 1'000'000'000;
  char time[40];
  std::snprintf(time, sizeof time, "%llu.%09llu",
                static_cast<unsigned long long>(cut.start_unix_ns / second_ns),
                static_cast<unsigned long long>(cut.start_unix_ns % second_ns));
  return host + "-" + time + "-" + cut.boot + std::string(Spool::suffix);
}

}  // namespace

Result<> FilesSink::put(const CutFile& cut) {
  std::error_code error;
  fs::create_directories(directory_, error);
  const std::string to = directory_ + "/" + name_of(cut);
  // On another file system, it is copied. What is there already is the same.
  if (::link(cut.path.c_str(), to.c_str()) && errno != EEXIST) {
    const auto bytes = read_file(cut.path, most_of_a_cut);
    if (!bytes) return std::unexpected(bytes.error());
    if (auto r = write_file(to, *bytes); !r) return r;
  }
  retain();
  return {};
}

void FilesSink::retain() const {
  if (!keep_.age_ns && !keep_.bytes) return;
  struct File {
    fs::path path;
    uint64_t bytes;
  };
  std::multimap<fs::file_time_type, File> files;
  uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error)) {
    if (!entry.path().filename().string().ends_with(Spool::suffix) || !entry.is_regular_file(error))
      continue;
    files.emplace(entry.last_write_time(error), File{entry.path(), entry.file_size(error)});
    bytes += entry.file_size(error);
  }
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::nanoseconds(keep_.age_ns);
  for (const auto& [time, file] : files) {
    const bool is_old = keep_.age_ns && time < oldest;
    if (!is_old && !(keep_.bytes && bytes > keep_.bytes)) return;
    fs::remove(file.path, error);
    bytes -= file.bytes;
  }
}

}  // namespace pkprof
