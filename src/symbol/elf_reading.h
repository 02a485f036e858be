// SPDX-License-Identifier: Apache-2.0
// Reading one ELF file with the debug files that belong to it, on whatever thread: it knows nothing
// but what it is given.
#pragma once

#include <memory>
#include <string>

#include "symbol/elf/elf_file.h"
#include "symbol/elf/file_access.h"

namespace pkprof {

// A way to a file: a path below a root or, without one, through /proc's magic links.
struct FileWay {
  std::shared_ptr<RootDir> root;
  std::string path;

  [[nodiscard]] Result<Fd> open() const;
  [[nodiscard]] Result<FileStamp> look() const;
};

struct ElfReading {
  struct Got {
    std::shared_ptr<ElfFile> elf;
    bool for_all = false;  // or for the processes of that root alone
  };

  FileWay way;
  FileStamp file;    // what the way must lead to
  std::string path;  // what the process calls it
  std::shared_ptr<RootDir> system_root;
  std::shared_ptr<RootDir> process_root;  // nullptr: the system's
  ElfFile::Options options;               // debug.root is set here

  [[nodiscard]] Result<Got> run() const;

 private:
  [[nodiscard]] Result<std::shared_ptr<ElfFile>> open(const std::string& called,
                                                      const std::shared_ptr<RootDir>& root) const;
};

}  // namespace pkprof
