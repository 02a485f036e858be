// SPDX-License-Identifier: Apache-2.0
// An open ELF file: libelf, with what it does not check. libelf verifies that tables lie inside the
// file, but a sparse file may be of any size, so everything that is read has a limit here.
//
// The file is read, not mapped: one that is truncated meanwhile gives an error instead of SIGBUS.
#pragma once

#include <gelf.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

struct ElfSection {
  Elf_Scn* scn = nullptr;
  std::string_view name;  // valid as long as the handle
  GElf_Shdr header = {};
};

struct ElfSegment {  // a PT_LOAD
  uint64_t vaddr = 0;
  uint64_t offset = 0;
  uint64_t file_size = 0;
  uint64_t align = 0;
  bool executable = false;
};

class ElfHandle {
 public:
  static Result<ElfHandle> open(Fd fd);
  static Result<ElfHandle> from_memory(std::string image);

  [[nodiscard]] Elf* elf() const { return elf_.get(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] uint16_t machine() const { return machine_; }
  [[nodiscard]] const std::vector<ElfSection>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<ElfSegment>& segments() const { return segments_; }
  // The first section of that name or type that has contents; nullptr when there is none.
  [[nodiscard]] const ElfSection* section(std::string_view name) const;
  [[nodiscard]] const ElfSection* section_of_type(uint32_t type) const;
  // The section's contents; nullptr when it has none, is compressed, damaged or above `limit`.
  [[nodiscard]] Elf_Data* data(const ElfSection& section, uint64_t limit) const;
  [[nodiscard]] std::string build_id() const;  // lower-case hex, "" when there is none

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  Result<> read_headers();
  Result<> read_sections();

  Fd fd_;
  std::unique_ptr<std::string> image_;
  std::unique_ptr<Elf, EndElf> elf_;  // destroyed before what it reads from
  uint16_t machine_ = 0;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
};

// The string at `offset` of a string table, cut at `limit`; "" when it is not inside.
[[nodiscard]] std::string_view string_at(const Elf_Data* table, uint64_t offset, size_t limit);

}  // namespace pkprof
