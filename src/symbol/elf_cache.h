// SPDX-License-Identifier: Apache-2.0
// The ELF files behind mappings: found, verified to be what was mapped, opened once each.
//
// A file is known by its device and inode, never by a build-id, which anybody can give a file of
// his own. The system's debug files name it for all processes. Those below another root, where the
// names may be anybody's, are asked where the system has none, and name it for the processes of
// that root alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "symbol/elf_reading.h"
#include "symbol/reader_thread.h"
#include "symbol/symbolizer.h"
#include "symbol/warnings.h"

namespace pkprof {

// From where a process sees files.
struct ProcessView {
  uint32_t pid = 0;               // 0 when it is gone or not known
  std::shared_ptr<RootDir> root;  // nullptr when it is our own, or not known
};

class ElfCache {
 public:
  ElfCache(const UserSymbolsOptions& options, std::shared_ptr<RootDir> system_root,
           ReaderThread& reader, Warnings& warnings);

  // The file behind a mapping of the process; nullptr, with a warning if one is due, when there is
  // none to be had.
  std::shared_ptr<ElfFile> find(const UserMap& map, const ProcessView& process);

 private:
  // Whose word counts: {} is the system's.
  using Owner = RootDir::Identity;
  // As the mapping says: major, minor, inode.
  using MapKey = std::tuple<uint32_t, uint32_t, uint64_t>;
  // What is asked for, by whom.
  struct Place {
    std::string path;
    MapKey map;
    Owner owner;
    auto operator<=>(const Place&) const = default;
  };

  static Owner owner_of(const ProcessView& process);
  static MapKey key_of(const UserMap& map);
  // What the job returns, or a failure where the file does not answer, now and ever after.
  template <typename Job>
  std::invoke_result_t<Job&> ask(const Place& place, Job job) {
    if (!silent_.contains(place))
      if (auto answer = reader_.run(std::move(job))) return std::move(*answer);
    silent_.insert(place);
    return fail(place.path + ": does not answer");
  }
  void remember(const UserMap& map, const FileStamp& file, const ProcessView& process,
                const std::shared_ptr<ElfFile>& elf);
  [[nodiscard]] const std::shared_ptr<ElfFile>* read_before(const FileStamp& file,
                                                            const ProcessView& process) const;
  std::shared_ptr<ElfFile> known(const UserMap& map, const std::string& path,
                                 const ProcessView& process);
  std::shared_ptr<ElfFile> vdso(const UserMap& map);
  std::shared_ptr<ElfFile> read(const FileWay& way, const FileStamp& file, const Place& place,
                                const ProcessView& process, std::string& error);

  UserSymbolsOptions options_;
  std::shared_ptr<RootDir> system_root_;
  ReaderThread& reader_;
  Warnings& warnings_;
  // nullptr for what is no ELF file. Of another root only what its own debug files were asked for.
  std::map<std::pair<FileStamp, Owner>, std::shared_ptr<ElfFile>> files_;
  // For processes that are gone, by the root from which the file was found.
  std::map<std::pair<MapKey, Owner>, std::shared_ptr<ElfFile>> verified_;
  std::set<Place> silent_;
  std::shared_ptr<ElfFile> vdso_;
  uint64_t vdso_size_ = 0;
  bool vdso_tried_ = false;
  uint64_t memory_ = 0;
};

}  // namespace pkprof
