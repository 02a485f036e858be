// SPDX-License-Identifier: Apache-2.0
// One ELF file as a profile needs it: its build-id, where its segments lie, names for addresses.
// The file itself is closed once its tables are read (unless lines are wanted).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbol/elf/elf_cfi.h"
#include "symbol/elf/elf_debug.h"
#include "symbol/elf/elf_handle.h"
#include "symbol/elf/elf_lines.h"
#include "symbol/elf/elf_symbols.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

class ElfFile {
 public:
  struct Options {
    DebugSearch debug;
    bool lines = false;
    bool symbols = true;  // false: only the build-id and the segments
    bool names = false;   // keep every name, aliases too, for code()
    bool data = false;    // and the names of data, for data_at()
  };

  // `path` is the file's own, as seen from its root; it tells where a debug file may be.
  static Result<std::shared_ptr<ElfFile>> open(Fd fd, const std::string& path,
                                               const Options& options);
  static Result<std::shared_ptr<ElfFile>> from_memory(std::string image);

  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  // The ELF's own address of a byte of the file that is mapped as code.
  [[nodiscard]] std::optional<uint64_t> vaddr_of(uint64_t file_offset) const;
  // The demangled name of the function there; "" when none is known. Valid until the next.
  [[nodiscard]] std::string_view function_at(uint64_t vaddr);
  // Where the function there begins that has no name; none: it has one, or nothing is known.
  [[nodiscard]] std::optional<uint64_t> unnamed_function_at(uint64_t vaddr) const;
  // The demangled name of the data there, "table+0x40" in the middle of it; "" when none is known.
  [[nodiscard]] std::string data_at(uint64_t vaddr) const;
  [[nodiscard]] SourceLine line_at(uint64_t vaddr);
  [[nodiscard]] std::vector<InlinedCall> inlined_at(uint64_t vaddr);  // as ElfLines has it
  [[nodiscard]] FileCode code() const;
  [[nodiscard]] size_t function_count() const { return functions_.size(); }
  // False when a symbol table was left out because of its size.
  [[nodiscard]] bool complete() const { return complete_; }
  // True when a separate debug file would tell more and none was found.
  [[nodiscard]] bool lacks_debug_file() const { return lacks_debug_file_; }
  [[nodiscard]] uint64_t memory() const {
    return functions_.memory() + data_.memory() + unnamed_.capacity() * sizeof(CfiFunction) +
           (lines_ ? lines_->memory() : 0);
  }

 private:
  void load(ElfHandle elf, const std::string& path, const Options& options);

  std::string build_id_;
  std::vector<ElfSegment> segments_;
  ElfFunctions functions_;
  ElfFunctions data_;
  std::vector<CfiFunction> unnamed_;  // all, by address, where most have no names
  std::vector<FileCode::Function> names_;
  std::unordered_map<uint32_t, std::string> demangled_;  // of those that were asked for
  uint64_t demangled_bytes_ = 0;
  std::unique_ptr<ElfLines> lines_;
  bool complete_ = true;
  bool lacks_debug_file_ = false;
};

}  // namespace pkprof
