// SPDX-License-Identifier: Apache-2.0
// Who may name a file's functions: the file itself and the system's debug files, for all processes
// that have it. A process's own root may hold debug files that anybody made; they are asked last,
// and believed for the processes of that root.
#include "symbol/elf_reading.h"

namespace pkprof {

Result<Fd> FileWay::open() const {
  return root ? root->open_regular(path) : open_regular_magic(path);
}

Result<FileStamp> FileWay::look() const {
  const auto fd = open();
  if (!fd) return std::unexpected(fd.error());
  return stamp_of(fd->get());
}

Result<std::shared_ptr<ElfFile>> ElfReading::open(const std::string& called,
                                                  const std::shared_ptr<RootDir>& root) const {
  auto fd = way.open();
  if (!fd) return std::unexpected(fd.error());
  if (stamp_of(fd->get()) != file) return fail("changed while it was looked at");
  ElfFile::Options with = options;
  with.debug.root = root;
  return ElfFile::open(std::move(*fd), called, with);
}

// Debug files beside a program are found by its name, which below another root may be any: there it
// counts for the system only where the system has the same file by it.
Result<ElfReading::Got> ElfReading::run() const {
  const bool systems_name =
      !process_root || (system_root && FileWay{system_root, path}.look() == file);
  auto elf = open(systems_name ? path : "", system_root);
  if (!elf) return std::unexpected(elf.error());
  if (!process_root || !(*elf)->lacks_debug_file()) return Got{*elf, true};
  const auto own = open(path, process_root);
  if (own && !(*own)->lacks_debug_file()) return Got{*own, false};
  return Got{*elf, systems_name};
}

}  // namespace pkprof
