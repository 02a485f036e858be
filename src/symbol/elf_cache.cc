// SPDX-License-Identifier: Apache-2.0
// A name is not a file: since it was mapped it may have been replaced, removed, or it may mean
// something else in the process's own mount namespace. So several ways are tried, from the most to
// the least likely, and what they lead to must have the inode (or the build-id) that the mapping
// told. Devices are compared where both are real ones: overlayfs, btrfs and NFS show anonymous
// devices that differ between a mapping and stat.
#include "symbol/elf_cache.h"

#include <sys/auxv.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <functional>
#include <optional>

#include "symbol/maps.h"

namespace pkprof {
namespace {

constexpr std::string_view deleted_suffix = " (deleted)";

uint64_t device_of(const UserMap& map) {
  return gnu_dev_makedev(map.device_major, map.device_minor);
}

bool device_differs(const UserMap& map, const FileStamp& file) {
  const bool anonymous = map.device_major == 0 || gnu_dev_major(file.device) == 0;
  return !anonymous && device_of(map) != file.device;
}

std::string map_files_link(const UserMap& map, uint32_t pid) {
  char range[64];
  std::snprintf(range, sizeof range, "/map_files/%" PRIx64 "-%" PRIx64, map.start, map.end);
  return "/proc/" + std::to_string(pid) + range;
}

std::vector<FileWay> ways_to(const UserMap& map, const std::string& path, bool by_name,
                             const std::shared_ptr<RootDir>& system_root,
                             const ProcessView& process) {
  std::vector<FileWay> ways;
  const bool verifiable = map.inode != 0 || !map.build_id.empty();
  if (by_name && process.root) ways.push_back({process.root, path});
  // What a container calls /usr/bin/x is not ours, unless there is proof.
  if (by_name && system_root && (!process.root || verifiable)) ways.push_back({system_root, path});
  if (process.pid != 0) {
    ways.push_back({nullptr, map_files_link(map, process.pid)});
    if (map.inode != 0) ways.push_back({nullptr, "/proc/" + std::to_string(process.pid) + "/exe"});
  }
  return ways;
}

}  // namespace

ElfCache::ElfCache(const UserSymbolsOptions& options, std::shared_ptr<RootDir> system_root,
                   ReaderThread& reader, Warnings& warnings)
    : options_(options),
      system_root_(std::move(system_root)),
      reader_(reader),
      warnings_(warnings) {}

std::shared_ptr<ElfFile> ElfCache::find(const UserMap& map, const ProcessView& process) {
  if (map.file == "[vdso]") return vdso(map);
  if (!map.file.starts_with('/') || map.file.starts_with("//")) return nullptr;
  std::string path = map.file;
  const bool deleted = path.ends_with(deleted_suffix);
  if (deleted) path.resize(path.size() - deleted_suffix.size());
  const bool verifiable = map.inode != 0 || !map.build_id.empty();
  const bool memory = path.starts_with("/memfd:");
  const bool by_name = !memory && (!deleted || verifiable);

  if (by_name)
    if (auto elf = known(map, path, process)) return elf;

  const Place place{path, key_of(map), owner_of(process)};
  std::string error = path + ": removed since it was mapped";
  std::optional<std::pair<FileWay, FileStamp>> doubtful;
  std::shared_ptr<ElfFile> elf;
  const auto accept = [&](const FileWay& way, const FileStamp& file) {
    elf = read(way, file, place, process, error);
    if (elf && !map.build_id.empty() && elf->build_id() != map.build_id) {
      error = path + ": changed since it was mapped (another build-id)";
      elf = nullptr;
    }
    if (elf) remember(map, file, process, elf);
    return elf != nullptr;
  };
  for (const FileWay& way : ways_to(map, path, by_name, system_root_, process)) {
    const auto file = ask(place, [way] { return way.look(); });
    if (!file) {
      if ((!deleted && way.root) || silent_.contains(place)) error = file.error().message;
      continue;
    }
    if (map.inode != 0 && file->inode != map.inode) {
      if (way.root) error = path + ": changed since it was mapped (another inode)";
      continue;
    }
    if (map.inode != 0 && way.root && device_differs(map, *file)) {
      doubtful.emplace(way, *file);
      continue;
    }
    if (accept(way, *file)) return elf;
  }
  if (doubtful && accept(doubtful->first, doubtful->second)) {
    warnings_.add(path + ": on another device than what was mapped; its names may be wrong");
    return elf;
  }
  const auto before = verified_.find({key_of(map), owner_of(process)});
  if (map.inode != 0 && before != verified_.end()) return before->second;
  if (!is_anonymous(map.file)) warnings_.add(error + "; its functions have no names");
  return nullptr;
}

ElfCache::Owner ElfCache::owner_of(const ProcessView& process) {
  return process.root ? process.root->identity() : Owner{};
}

ElfCache::MapKey ElfCache::key_of(const UserMap& map) {
  return {map.device_major, map.device_minor, map.inode};
}

// Of the system's processes any may be a hostile user's, who can have a file with any inode on a
// file system of his own.
void ElfCache::remember(const UserMap& map, const FileStamp& file, const ProcessView& process,
                        const std::shared_ptr<ElfFile>& elf) {
  if (map.inode != 0 && (process.root || file.device == device_of(map)))
    verified_[{key_of(map), owner_of(process)}] = elf;
}

// nullptr when it has not been read yet, or not with the debug files of the process's root.
const std::shared_ptr<ElfFile>* ElfCache::read_before(const FileStamp& file,
                                                      const ProcessView& process) const {
  if (const auto own = files_.find({file, owner_of(process)}); own != files_.end())
    return &own->second;
  const auto system = files_.find({file, {}});
  if (system == files_.end()) return nullptr;
  const bool is_enough = !system->second || !system->second->lacks_debug_file();
  return is_enough ? &system->second : nullptr;
}

// The first of the ways, without opening what was opened before: of a program that is started a
// thousand times a second that would be most of what its names cost.
std::shared_ptr<ElfFile> ElfCache::known(const UserMap& map, const std::string& path,
                                         const ProcessView& process) {
  const auto& root = process.root ? process.root : system_root_;
  if (!root || map.inode == 0) return nullptr;
  const auto file = root->look_at(path);
  if (!file || file->inode != map.inode || device_differs(map, *file)) return nullptr;
  const auto* const found = read_before(*file, process);
  if (found == nullptr || !*found) return nullptr;
  if (!map.build_id.empty() && (*found)->build_id() != map.build_id) return nullptr;
  remember(map, *file, process, *found);
  return *found;
}

// Takes a file whose identity is settled. What was read once is not read again, however many
// processes map it and by whatever name.
std::shared_ptr<ElfFile> ElfCache::read(const FileWay& way, const FileStamp& file,
                                        const Place& place, const ProcessView& process,
                                        std::string& error) {
  if (const auto* const known = read_before(file, process)) {
    if (!*known) error = place.path + ": not a usable ELF file";
    return *known;
  }
  ElfFile::Options options;
  options.debug.debug_dirs = options_.debug_dirs;
  options.names = options_.names;
  options.data = options_.data;
  options.symbols = memory_ < options_.memory_limit;
  options.lines = (options_.lines || options_.inlines) && options.symbols;
  const ElfReading reading{way, file, place.path, system_root_, process.root, options};
  auto got = ask(place, [reading] { return reading.run(); });
  if (!got) {
    error = got.error().in(place.path).message;
    if (!silent_.contains(place)) files_.emplace(std::pair(file, Owner{}), nullptr);
    return nullptr;
  }
  if (!got->elf->complete()) warnings_.add(place.path + ": symbols left out, they are too large");
  memory_ += got->elf->memory();
  if (got->for_all) files_.emplace(std::pair(file, Owner{}), got->elf);
  return files_[{file, owner_of(process)}] = got->elf;
}

// The kernel maps the same image into every process (of the same word size: a 32-bit process has
// another one, which is told by its size), so ours will do.
std::shared_ptr<ElfFile> ElfCache::vdso(const UserMap& map) {
  if (!vdso_tried_) {
    vdso_tried_ = true;
    const auto base = static_cast<uint64_t>(::getauxval(AT_SYSINFO_EHDR));
    const auto own = read_proc_file("/proc/self/maps", size_t{64} << 20);
    if (base != 0 && own) {
      for (const UserMap& m : parse_maps(*own).executable) {
        if (m.start != base) continue;
        vdso_size_ = m.end - m.start;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): it comes as a number.
        const auto* bytes = reinterpret_cast<const char*>(base);
        if (auto elf = ElfFile::from_memory({bytes, vdso_size_})) vdso_ = *elf;
      }
    }
  }
  return map.end - map.start == vdso_size_ ? vdso_ : nullptr;
}

}  // namespace pkprof
