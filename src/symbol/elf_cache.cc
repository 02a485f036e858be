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

constexpr size_t max_warnings = 200;
constexpr std::string_view deleted_suffix = " (deleted)";

bool device_differs(const UserMap& map, const struct stat& st) {
  const bool anonymous = map.device_major == 0 || gnu_dev_major(st.st_dev) == 0;
  return !anonymous && (map.device_major != gnu_dev_major(st.st_dev) ||
                        map.device_minor != gnu_dev_minor(st.st_dev));
}

std::string map_files_link(const UserMap& map, uint32_t pid) {
  char range[64];
  std::snprintf(range, sizeof range, "/map_files/%" PRIx64 "-%" PRIx64, map.start, map.end);
  return "/proc/" + std::to_string(pid) + range;
}

// One way to the file, tried only when those before it have failed.
struct Way {
  std::function<Result<Fd>()> open;
  bool by_kernel = false;  // the kernel's own link to what is mapped
};

std::vector<Way> ways_to(const UserMap& map, const std::string& path, bool by_name,
                         const std::shared_ptr<RootDir>& system_root, const ProcessView& process) {
  std::vector<Way> ways;
  const bool verifiable = map.inode != 0 || !map.build_id.empty();
  if (by_name && process.root) {
    ways.push_back({[&] { return process.root->open_regular(path); }});
  }
  // What a container calls /usr/bin/x is not ours, unless there is proof.
  if (by_name && system_root && (!process.root || verifiable)) {
    ways.push_back({[&] { return system_root->open_regular(path); }});
  }
  if (process.pid != 0) {
    ways.push_back({[&] { return open_regular_magic(map_files_link(map, process.pid)); }, true});
    if (map.inode != 0) {
      ways.push_back({[&] {
                        const std::string proc = "/proc/" + std::to_string(process.pid);
                        return open_regular_magic(proc + "/exe");
                      },
                      true});
    }
  }
  return ways;
}

}  // namespace

bool is_anonymous(const std::string& file) {
  return file.empty() || file.starts_with("//anon") || file.starts_with("[") ||
         file.starts_with("/memfd:") || file.starts_with("/dev/zero") ||
         file.starts_with("/SYSV") || file.starts_with("/anon_hugepage") ||
         file.starts_with("/dev/shm/") || file.starts_with("anon_inode:");
}

void Warnings::add(std::string text) {
  if (seen_.contains(text)) return;
  if (order_.size() >= max_warnings) {
    ++left_out_;
    return;
  }
  seen_.insert(text);
  order_.push_back(std::move(text));
}

std::vector<std::string> Warnings::list() const {
  std::vector<std::string> all = order_;
  if (left_out_ > 0) {
    all.push_back("symbols: " + std::to_string(left_out_) + " more warnings are left out");
  }
  return all;
}

ElfCache::ElfCache(const UserSymbolsOptions& options, std::shared_ptr<RootDir> system_root,
                   Warnings& warnings)
    : options_(options), system_root_(std::move(system_root)), warnings_(warnings) {}

std::shared_ptr<ElfFile> ElfCache::find(const UserMap& map, const ProcessView& process) {
  if (map.file == "[vdso]") return vdso(map);
  if (!map.file.starts_with('/') || map.file.starts_with("//")) return nullptr;
  std::string path = map.file;
  const bool deleted = path.ends_with(deleted_suffix);
  if (deleted) path.resize(path.size() - deleted_suffix.size());
  const bool verifiable = map.inode != 0 || !map.build_id.empty();
  const bool memory = path.starts_with("/memfd:");
  const bool by_name = !memory && (!deleted || verifiable);

  const MapKey key{map.device_major, map.device_minor, map.inode};
  if (by_name)
    if (auto elf = known(map, path, process)) return verified_[key] = std::move(elf);

  std::string error = path + ": removed since it was mapped";
  Fd doubtful;
  std::shared_ptr<ElfFile> elf;
  const auto accept = [&](Fd fd) {
    elf = open(std::move(fd), path, process, error);
    if (elf && !map.build_id.empty() && elf->build_id() != map.build_id) {
      error = path + ": changed since it was mapped (another build-id)";
      elf = nullptr;
    }
    return elf != nullptr;
  };
  for (const Way& way : ways_to(map, path, by_name, system_root_, process)) {
    auto fd = way.open();
    if (!fd) {
      if (!deleted && !way.by_kernel) error = fd.error().message;
      continue;
    }
    struct stat st = {};
    if (::fstat(fd->get(), &st) != 0) continue;
    if (map.inode != 0 && st.st_ino != map.inode) {
      if (!way.by_kernel) error = path + ": changed since it was mapped (another inode)";
      continue;
    }
    if (map.inode != 0 && !way.by_kernel && device_differs(map, st)) {
      doubtful = std::move(*fd);
      continue;
    }
    if (accept(std::move(*fd))) break;
  }
  if (!elf && doubtful.valid() && accept(std::move(doubtful))) {
    warnings_.add(path + ": on another device than what was mapped; its names may be wrong");
  }

  if (elf) {
    if (map.inode != 0) verified_[key] = elf;
    return elf;
  }
  if (const auto known = verified_.find(key); map.inode != 0 && known != verified_.end()) {
    return known->second;
  }
  if (!is_anonymous(map.file)) warnings_.add(error + "; its functions have no names");
  return nullptr;
}

ElfCache::FileKey ElfCache::key_of(const struct stat& st) {
  return {st.st_dev, st.st_ino, int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec,
          st.st_size};
}

// The first of the ways, without opening what was opened before: of a program that is started a
// thousand times a second that would be most of what its names cost.
std::shared_ptr<ElfFile> ElfCache::known(const UserMap& map, const std::string& path,
                                         const ProcessView& process) const {
  const auto& root = process.root ? process.root : system_root_;
  if (!root || map.inode == 0) return nullptr;
  const auto st = root->look_at(path);
  if (!st || st->st_ino != map.inode || device_differs(map, *st)) return nullptr;
  const auto found = files_.find(key_of(*st));
  if (found == files_.end() || !found->second) return nullptr;
  const bool other = !map.build_id.empty() && found->second->build_id() != map.build_id;
  return other ? nullptr : found->second;
}

// Takes a file whose identity is settled. What was read once is not read again, however many
// processes map it and by whatever name.
std::shared_ptr<ElfFile> ElfCache::open(Fd fd, const std::string& path, const ProcessView& process,
                                        std::string& error) {
  struct stat st = {};
  if (::fstat(fd.get(), &st) != 0) return nullptr;
  const FileKey key = key_of(st);
  if (const auto known = files_.find(key); known != files_.end()) {
    if (!known->second) error = path + ": not a usable ELF file";
    return known->second;
  }
  ElfFile::Options options;
  if (process.root) options.debug.roots.push_back(process.root);
  if (system_root_) options.debug.roots.push_back(system_root_);
  options.debug.debug_dirs = options_.debug_dirs;
  options.lines = options_.lines;
  options.names = options_.names;
  options.symbols = memory_ < options_.memory_limit;
  auto elf = ElfFile::open(std::move(fd), path, options);
  if (!elf) {
    error = elf.error().in(path).message;
    files_.emplace(key, nullptr);
    return nullptr;
  }
  if (!(*elf)->complete()) {
    warnings_.add(path + ": symbols left out, they are too large");
  }
  memory_ += (*elf)->memory();
  files_.emplace(key, *elf);
  return *elf;
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
