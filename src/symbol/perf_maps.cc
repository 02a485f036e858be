// SPDX-License-Identifier: Apache-2.0
// A compiler that goes on writes a longer file each second, and what is read anew is all of it. So
// reading anew may take one twentieth of the time, all files together.
#include "symbol/perf_maps.h"

#include <algorithm>

namespace pkprof {

struct PerfMaps::Opened {
  Fd fd;
  Found found;
};

std::optional<PerfMaps::Opened> PerfMaps::open(const Place& place) {
  for (const std::string& path : place.paths) {
    auto fd = place.root->open_owned(path, place.owners);
    if (!fd) continue;
    if (const auto stamp = stamp_of(fd->get())) return Opened{std::move(*fd), {path, *stamp}};
  }
  return std::nullopt;
}

std::shared_ptr<const PerfMaps::File> PerfMaps::look(const Place& place) {
  const auto found = ask(place, [place]() -> std::optional<Found> {
    const auto opened = open(place);
    return opened ? std::optional(opened->found) : std::nullopt;
  });
  if (!found) return nullptr;
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<File>& known = files_[{found->stamp.device, found->stamp.inode}];
  auto file = known.lock();
  if (file && (file->stamp == found->stamp || Clock::now() < next_rereading_)) return file;
  const bool again = file != nullptr;
  if (!file) known = file = std::make_shared<File>();
  const auto begun = Clock::now();
  read(place, *found, *file);
  if (again) next_rereading_ = Clock::now() + 20 * (Clock::now() - begun);
  return file;
}

// The file's size alone may say that it does not fit: names are most of it.
void PerfMaps::read(const Place& place, const Found& found, File& file) {
  file.stamp = found.stamp;
  file.map = {};
  const uint64_t used = memory_used();
  const uint64_t left = memory_limit_ - std::min(used, memory_limit_);
  const auto size = static_cast<uint64_t>(found.stamp.size);
  bool is_there = true;
  std::optional<PerfMap> map;
  if (size <= left) {
    map = ask(place, [place, found, size, left]() -> std::optional<PerfMap> {
      const auto opened = open(place);
      if (!opened || opened->found.stamp.inode != found.stamp.inode) return PerfMap();
      return PerfMap::read(opened->fd.get(), size, left);
    });
    is_there = !silent_.contains(key_of(place));
  }
  if (map && map->malformed() > 0) {
    warnings_.add(found.path + ": " + std::to_string(map->malformed()) +
                  " malformed lines were skipped");
  }
  if (map) file.map = std::move(*map);
  if (!map && is_there) {
    warnings_.add(found.path + ": left out, perf maps may take " +
                  std::to_string(memory_limit_ >> 20) +
                  " MiB together; its functions have no names");
  }
}

uint64_t PerfMaps::memory_used() const {
  uint64_t memory = 0;
  for (const auto& [key, entry] : files_)
    if (const auto file = entry.lock()) memory += file->map.memory();
  return memory;
}

}  // namespace pkprof
