// SPDX-License-Identifier: Apache-2.0
// From a byte of the file to a name.
//
// A mapping tells which part of a file lies where in memory; the segments tell which address the
// linker gave that part. The two meet in the file offset, which is exact for position-independent
// and fixed programs alike, whatever base the loader chose. The kernel maps whole pages, so the
// page at a segment's edge also holds bytes of its neighbour, mapped twice: code is what we look
// for, so executable segments are asked first, by their exact extent, then rounded to pages.
#include "symbol/elf/elf_file.h"

#include <algorithm>

#include "symbol/elf/at_offset.h"
#include "symbol/elf/demangle.h"
#include "symbol/elf/elf_mini_debug.h"

namespace pkprof {
namespace {

constexpr uint64_t page_size = 4096;  // the smallest there is; segments may ask for more
constexpr size_t max_demangled_bytes = size_t{64} << 20;

bool covers(const ElfSegment& s, uint64_t offset, bool rounded) {
  if (s.file_size == 0 || s.offset > UINT64_MAX - s.file_size) return false;
  uint64_t begin = s.offset;
  uint64_t end = s.offset + s.file_size;
  if (rounded) {
    begin &= ~(page_size - 1);
    end = end > UINT64_MAX - page_size ? UINT64_MAX : (end + page_size - 1) & ~(page_size - 1);
  }
  return begin <= offset && offset < end;
}

}  // namespace

Result<std::shared_ptr<ElfFile>> ElfFile::open(Fd fd, const std::string& path,
                                               const Options& options) {
  auto elf = ElfHandle::open(std::move(fd));
  if (!elf) return std::unexpected(elf.error());
  auto file = std::make_shared<ElfFile>();
  file->load(std::move(*elf), path, options);
  return file;
}

Result<std::shared_ptr<ElfFile>> ElfFile::from_memory(std::string image) {
  auto elf = ElfHandle::from_memory(std::move(image));
  if (!elf) return std::unexpected(elf.error());
  auto file = std::make_shared<ElfFile>();
  file->load(std::move(*elf), "", {});
  return file;
}

// A debug file is only looked for when the file itself lacks what is wanted.
void ElfFile::load(ElfHandle elf, const std::string& path, const Options& options) {
  build_id_ = elf.build_id();
  segments_ = elf.segments();
  if (!options.symbols) {
    complete_ = false;
    return;
  }
  const bool has_lines = elf.section(".debug_line") != nullptr;
  const bool wants_debug =
      elf.section_of_type(SHT_SYMTAB) == nullptr || (options.lines && !has_lines);
  std::optional<ElfHandle> debug;
  if (wants_debug) debug = find_debug_file(elf, build_id_, path, options.debug);
  lacks_debug_file_ = wants_debug && !debug;

  ElfFunctionsBuilder builder;
  complete_ = builder.add(elf);
  if (wants_debug && !debug) debug = open_mini_debug(elf);
  if (debug) complete_ = builder.add(*debug) && complete_;
  if (options.names) names_ = builder.every_name();
  functions_ = builder.build();
  if (options.data) {
    ElfFunctionsBuilder data(ElfFunctionsBuilder::Kind::data);
    complete_ = data.add(elf) && complete_;
    if (debug) complete_ = data.add(*debug) && complete_;
    data_ = data.build();
  }
  constexpr size_t most_unnamed = size_t{4} << 20;
  if (wants_debug && !debug) unnamed_ = read_cfi_functions(elf, most_unnamed);
  if (!options.lines) return;
  if (has_lines || !debug) {
    lines_ = ElfLines::open(std::move(elf));
  } else {
    lines_ = ElfLines::open(std::move(*debug));
  }
}

std::optional<uint64_t> ElfFile::vaddr_of(uint64_t file_offset) const {
  for (const bool rounded : {false, true}) {
    for (const bool executable : {true, false}) {
      for (const ElfSegment& s : segments_) {
        if (s.executable == executable && covers(s, file_offset, rounded)) {
          return file_offset - s.offset + s.vaddr;
        }
      }
    }
  }
  return std::nullopt;
}

std::string_view ElfFile::function_at(uint64_t vaddr) {
  ElfFunctions::Found found;
  if (!functions_.find(vaddr, found)) return {};
  const auto known = demangled_.find(found.id);
  if (known != demangled_.end()) return known->second;
  if (demangled_bytes_ > max_demangled_bytes) {
    demangled_.clear();
    demangled_bytes_ = 0;
  }
  std::string name = demangle(found.name);
  demangled_bytes_ += name.size() + 64;  // and the table's own
  return demangled_.emplace(found.id, std::move(name)).first->second;
}

std::string ElfFile::data_at(uint64_t vaddr) const {
  const FlatRange* range = find_range(data_.ranges(), vaddr);
  if (range == nullptr) return "";
  return at_offset(demangle(data_.name(*range)), vaddr - range->start);
}

std::optional<uint64_t> ElfFile::unnamed_function_at(uint64_t vaddr) const {
  if (ElfFunctions::Found found; functions_.find(vaddr, found)) return std::nullopt;
  const auto after = std::ranges::upper_bound(unnamed_, vaddr, {}, &CfiFunction::start);
  if (after == unnamed_.begin() || vaddr >= (after - 1)->end) return std::nullopt;
  return (after - 1)->start;
}

FileCode ElfFile::code() const {
  FileCode code;
  code.build_id = build_id_;
  for (const ElfSegment& s : segments_) {
    if (!s.executable || s.file_size == 0 || s.vaddr > UINT64_MAX - s.file_size) continue;
    if (code.end == 0 || s.vaddr < code.start) code.start = s.vaddr;
    code.end = std::max(code.end, s.vaddr + s.file_size);
  }
  code.functions.reserve(functions_.size());
  for (const FlatRange& range : functions_.ranges())
    code.functions.push_back({range.start, range.end, demangle(functions_.name(range))});
  code.names = names_;
  return code;
}

SourceLine ElfFile::line_at(uint64_t vaddr) {
  return lines_ == nullptr ? SourceLine{} : lines_->find(vaddr);
}

std::vector<InlinedCall> ElfFile::inlined_at(uint64_t vaddr) {
  return lines_ == nullptr ? std::vector<InlinedCall>() : lines_->inlined_at(vaddr);
}

}  // namespace pkprof
