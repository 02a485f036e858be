// SPDX-License-Identifier: Apache-2.0
// A debug file is believed when its build-id is the program's and it belongs to the program's owner
// or to root: anybody can give a program another name beside a file of his own. Only where the
// program has no build-id does the checksum in .gnu_debuglink decide; that means reading the whole
// file, so it has a limit.
#include "symbol/elf/elf_debug.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstring>

namespace pkprof {
namespace {

constexpr uint64_t max_checksummed = uint64_t{1} << 30;

struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};

std::optional<DebugLink> read_debuglink(const ElfHandle& elf) {
  const ElfSection* section = elf.section(".gnu_debuglink");
  const Elf_Data* data = section == nullptr ? nullptr : elf.data(*section, 4096);
  if (data == nullptr) return std::nullopt;
  const std::string_view name = string_at(data, 0, 256);
  // A name, not a path: a file must not send us elsewhere.
  if (name.empty() || name.size() == 256 || name == "." || name == ".." ||
      name.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  const size_t at = (name.size() + 1 + 3) & ~size_t{3};
  if (at + sizeof(uint32_t) > data->d_size) return std::nullopt;
  DebugLink link{std::string(name), 0};
  std::memcpy(&link.crc, static_cast<const char*>(data->d_buf) + at, sizeof link.crc);
  return link;
}

bool checksum_is(int fd, uint32_t wanted) {
  std::array<unsigned char, 65536> block;
  uLong crc = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < max_checksummed;) {
    const ssize_t got = ::pread(fd, block.data(), block.size(), static_cast<off_t>(at));
    if (got < 0) return false;
    if (got == 0) return crc == wanted;
    crc = ::crc32(crc, block.data(), static_cast<uInt>(got));
    at += static_cast<uint64_t>(got);
  }
  return false;
}

bool is_by_same_owner(int fd, const struct stat& program) {
  struct stat debug = {};
  return ::fstat(fd, &debug) == 0 && (debug.st_uid == 0 || debug.st_uid == program.st_uid);
}

std::vector<std::string> link_paths(const std::string& name, const std::string& path,
                                    const DebugSearch& search) {
  const std::string dir = path.substr(0, path.rfind('/') + 1);  // with the slash
  std::vector<std::string> paths = {dir + name, dir + ".debug/" + name};
  for (const std::string& debug_dir : search.debug_dirs) {
    std::string below = debug_dir;
    paths.push_back(below.append("/").append(dir).append(name));
  }
  return paths;
}

}  // namespace

std::optional<ElfHandle> find_debug_file(const ElfHandle& elf, const std::string& build_id,
                                         const std::string& path, const DebugSearch& search) {
  struct stat program = {};
  if (!search.root || ::fstat(elf.fd(), &program) != 0) return std::nullopt;
  const auto try_path = [&](const std::string& candidate,
                            const DebugLink* link) -> std::optional<ElfHandle> {
    auto fd = search.root->open_regular(candidate);
    if (!fd || !is_by_same_owner(fd->get(), program)) return std::nullopt;
    if (build_id.empty() && (link == nullptr || !checksum_is(fd->get(), link->crc))) {
      return std::nullopt;
    }
    auto debug = ElfHandle::open(std::move(*fd));
    if (!debug || debug->build_id() != build_id) return std::nullopt;
    return std::move(*debug);
  };

  if (build_id.size() > 2) {
    const std::string name = "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
    for (const std::string& dir : search.debug_dirs) {
      if (auto debug = try_path(dir + name + ".debug", nullptr)) return debug;
    }
  }
  const auto link = read_debuglink(elf);
  if (!link || path.empty()) return std::nullopt;
  for (const std::string& candidate : link_paths(link->name, path, search)) {
    if (candidate == path) continue;
    if (auto debug = try_path(candidate, &*link)) return debug;
  }
  return std::nullopt;
}

}  // namespace pkprof
