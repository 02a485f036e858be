// SPDX-License-Identifier: Apache-2.0
// The ELF files behind mappings: found, verified to be what was mapped, opened once each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// From where a process sees files.
struct ProcessView {
  uint32_t pid = 0;               // 0 when it is gone or not known
  std::shared_ptr<RootDir> root;  // nullptr when it is our own, or not known
};

// Sentences for the report, each once, and not more than a reader can bear.
class Warnings {
 public:
  void add(std::string text);
  [[nodiscard]] std::vector<std::string> list() const;

 private:
  std::set<std::string> seen_;
  std::vector<std::string> order_;
  size_t left_out_ = 0;
};

class ElfCache {
 public:
  ElfCache(const UserSymbolsOptions& options, std::shared_ptr<RootDir> system_root,
           Warnings& warnings);

  // The file behind a mapping of the process; nullptr, with a warning if one is due, when there is
  // none to be had.
  std::shared_ptr<ElfFile> find(const UserMap& map, const ProcessView& process);

 private:
  // st_dev, st_ino, mtime in nanoseconds, size.
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;
  // As the mapping says: major, minor, inode.
  using MapKey = std::tuple<uint32_t, uint32_t, uint64_t>;

  static FileKey key_of(const struct stat& st);
  std::shared_ptr<ElfFile> known(const UserMap& map, const std::string& path,
                                 const ProcessView& process) const;
  std::shared_ptr<ElfFile> vdso(const UserMap& map);
  std::shared_ptr<ElfFile> open(Fd fd, const std::string& path, const ProcessView& process,
                                std::string& error);

  UserSymbolsOptions options_;
  std::shared_ptr<RootDir> system_root_;
  Warnings& warnings_;
  std::map<FileKey, std::shared_ptr<ElfFile>> files_;    // nullptr for what is no ELF file
  std::map<MapKey, std::shared_ptr<ElfFile>> verified_;  // for processes that are gone
  std::shared_ptr<ElfFile> vdso_;
  uint64_t vdso_size_ = 0;
  bool vdso_tried_ = false;
  uint64_t memory_ = 0;
};

// Whether the name is of memory that no file is behind, where a JIT compiler's code may be.
[[nodiscard]] bool is_anonymous(const std::string& file);

}  // namespace pkprof
