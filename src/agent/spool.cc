// SPDX-License-Identifier: Apache-2.0
#include "agent/spool.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "model/file.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;

constexpr size_t start_digits = 20;  // of a name: when it began, "-", which boot
constexpr const char* fresh =
    "/fresh.pb.gz";  // before it is linked; of the last run, if it is there

// Another error than a full disk would have the whole spool dropped in vain.
bool has_room_for(const std::string& directory, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  return error || space.available > bytes;
}

bool is_cut(std::string_view name) {
  return name.ends_with(Spool::suffix) && name.size() > start_digits + Spool::suffix.size() &&
         name[start_digits] == '-' && std::ranges::all_of(name.substr(0, start_digits), [](char c) {
           return c >= '0' && c <= '9';
         });
}

}  // namespace

Spool::Spool(Spool&& other) noexcept
    : directory_(std::move(other.directory_)),
      most_bytes_(other.most_bytes_),
      queues_(std::move(other.queues_)) {}

Result<Spool> Spool::open(const std::string& directory, const std::vector<std::string>& sinks,
                          uint64_t most_bytes) {
  Spool spool(directory, most_bytes);
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (auto r = make_directory(directory, 0700); !r) return std::unexpected(r.error().in("spool"));
  for (const std::string& sink : sinks)
    if (auto r = spool.read(sink); !r) return std::unexpected(r.error().in("spool"));
  ::unlink((directory + fresh).c_str());
  return spool;
}

Result<> Spool::read(const std::string& sink) {
  Queue& queue = queues_[sink];
  if (auto r = make_directory(directory_of(sink), 0700); !r) return r;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_of(sink), error)) {
    const std::string name = entry.path().filename();
    if (!is_cut(name) || !entry.is_regular_file(error)) continue;
    const uint64_t bytes = entry.file_size(error);
    if (error) continue;
    queue.files.emplace(name, bytes);
    queue.bytes += bytes;
  }
  if (error) return fail(directory_of(sink) + ": " + error.message());
  return {};
}

void Spool::drop(const std::string& sink, Queue& queue) {
  const auto first = queue.files.begin();
  ::unlink((directory_of(sink) + "/" + first->first).c_str());
  queue.bytes -= first->second;
  queue.files.erase(first);
  ++queue.dropped;
}

// Of the sink that has most waiting. False: nothing waits.
bool Spool::drop_oldest() {
  const auto most =
      std::ranges::max_element(queues_, {}, [](const auto& entry) { return entry.second.bytes; });
  if (most == queues_.end() || most->second.files.empty()) return false;
  drop(most->first, most->second);
  return true;
}

Result<> Spool::add(uint64_t start_unix_ns, const std::string& boot, std::string_view file) {
  const std::lock_guard lock(mutex_);
  const std::string path = directory_ + fresh;
  Result<> written = write_file(path, file);
  while (!written && !has_room_for(directory_, file.size()) && drop_oldest())
    written = write_file(path, file);
  if (!written) return written;
  char number[24];
  std::snprintf(number, sizeof number, "%020llu", static_cast<unsigned long long>(start_unix_ns));
  const std::string name = std::string(number) + "-" + boot + std::string(suffix);
  Result<> all;
  for (auto& [sink, queue] : queues_) {
    while (!queue.files.empty() && queue.bytes + file.size() > most_bytes_) drop(sink, queue);
    const std::string link_path = directory_of(sink) + "/" + name;
    if (::link(path.c_str(), link_path.c_str())) {
      all = fail_errno(link_path);
      ++queue.dropped;
      continue;
    }
    queue.files.emplace(name, file.size());
    queue.bytes += file.size();
  }
  ::unlink(path.c_str());
  return all;
}

std::optional<Spool::Cut> Spool::oldest(const std::string& sink) const {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(sink);
  if (queue == queues_.end() || queue->second.files.empty()) return {};
  const std::string& name = queue->second.files.begin()->first;
  Cut cut{.path = directory_of(sink) + "/" + name, .boot = name.substr(start_digits + 1)};
  cut.boot.resize(cut.boot.size() - suffix.size());
  std::from_chars(name.data(), name.data() + start_digits, cut.start_unix_ns);
  return cut;
}

void Spool::remove(const std::string& sink, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(sink);
  if (queue == queues_.end()) return;
  const auto file = queue->second.files.find(fs::path(path).filename());
  if (file == queue->second.files.end()) return;  // it made room for others meanwhile
  ::unlink(path.c_str());
  queue->second.bytes -= file->second;
  queue->second.files.erase(file);
}

Spool::Depth Spool::depth(const std::string& sink) const {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(sink);
  if (queue == queues_.end()) return {};
  return {queue->second.files.size(), queue->second.bytes, queue->second.dropped};
}

std::vector<std::string> Spool::forsaken() const {
  std::vector<std::string> all;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error))
    if (entry.is_directory(error) && !queues_.contains(entry.path().filename()) &&
        !fs::is_empty(entry.path(), error))
      all.push_back(entry.path());
  return all;
}

}  // namespace pkprof
