// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_table.h"

#include <algorithm>

#include "pkprof/user_abi.h"
#include "symbol/elf/elf_cfi.h"
#include "symbol/elf/elf_handle.h"

namespace pkprof {
namespace {

constexpr uint64_t end_of_offsets = uint64_t{1} << 32;
constexpr uint32_t nothing = PK_RULE(PK_BY_NOTHING, 0, 0);

// By offset in the file: what of the rows lies in segments of code. Where segments overlap, the
// first is believed.
std::vector<UnwindTable::Row> by_offset(const std::vector<CfiRow>& rows,
                                        std::vector<ElfSegment> segments) {
  std::vector<UnwindTable::Row> out;
  std::ranges::stable_sort(segments, {}, &ElfSegment::offset);
  const auto put = [&out](uint64_t offset, uint32_t rule) {
    if (offset >= end_of_offsets) return;
    if (!out.empty() && out.back().offset == offset) out.pop_back();
    if (out.empty() ? rule != nothing : out.back().rule != rule)
      out.push_back({static_cast<uint32_t>(offset), rule});
  };
  uint64_t covered = 0;
  for (const ElfSegment& s : segments) {
    const uint64_t end = s.offset + s.file_size;
    if (!s.executable || s.offset < covered || end < s.offset || s.vaddr + s.file_size < s.vaddr)
      continue;
    auto row = std::ranges::upper_bound(rows, s.vaddr, {}, &CfiRow::address);
    put(s.offset, row == rows.begin() ? nothing : (row - 1)->rule);
    for (; row != rows.end() && row->address < s.vaddr + s.file_size; ++row)
      put(row->address - s.vaddr + s.offset, row->rule);
    put(end, nothing);
    covered = end;
  }
  return out;
}

}  // namespace

Result<UnwindTable> UnwindTable::read(Fd file) {
  auto elf = ElfHandle::open(std::move(file));
  if (!elf) return std::unexpected(elf.error());
  UnwindTable table;
  table.rows_ = by_offset(read_cfi_rows(*elf, most_rows), elf->segments());
  return table;
}

Result<UnwindTable> UnwindTable::of_image(std::string image) {
  auto elf = ElfHandle::from_memory(std::move(image));
  if (!elf) return std::unexpected(elf.error());
  UnwindTable table;
  table.rows_ = by_offset(read_cfi_rows(*elf, most_rows), elf->segments());
  return table;
}

uint32_t UnwindTable::rule_at(uint64_t offset) const {
  const auto after = std::ranges::upper_bound(rows_, offset, {}, &Row::offset);
  return after == rows_.begin() ? nothing : (after - 1)->rule;
}

// So that a search goes through some 16 rows.
UnwindTable::Index UnwindTable::index() const {
  constexpr uint32_t least_shift = 8;
  constexpr size_t rows_of_page = 16;
  if (rows_.empty()) return {};
  Index index{.shift = least_shift};
  const uint64_t end = uint64_t{rows_.back().offset} + 1;
  const auto count = [&] {
    index.first = rows_.front().offset >> index.shift << index.shift;
    index.pages = (end - index.first + (uint64_t{1} << index.shift) - 1) >> index.shift;
    return index.pages;
  };
  while (count() > rows_.size() / rows_of_page + 1) ++index.shift;
  return index;
}

size_t UnwindTable::blocks() const {
  // Before the first row nothing is known, which is a row, too.
  const size_t words = PK_BLOCK_WORDS + index().pages + 1 + rows_.size();
  return rows_.empty() ? 1 : (words + PK_BLOCK_WORDS - 1) / PK_BLOCK_WORDS;
}

void UnwindTable::lay_out(std::span<pk_unwind_block> to) const {
  const Index index = this->index();
  const auto word = [&to](size_t number) -> auto& {
    return to[number / PK_BLOCK_WORDS].word[number % PK_BLOCK_WORDS];
  };
  word(PK_HEAD_FIRST) = index.first;
  word(PK_HEAD_PAGES) = index.pages;
  word(PK_HEAD_SHIFT) = index.shift;
  if (rows_.empty()) return;
  const size_t first_row = PK_BLOCK_WORDS + index.pages;
  word(first_row) = index.first << 32 | nothing;
  for (size_t i = 0; i < rows_.size(); ++i)
    word(first_row + 1 + i) = uint64_t{rows_[i].offset} << 32 | rows_[i].rule;
  size_t row = 0;  // how many begin before the page, or with it
  for (uint64_t page = 0; page < index.pages; ++page) {
    const uint64_t begin = index.first + (page << index.shift);
    while (row < rows_.size() && rows_[row].offset <= begin) ++row;
    size_t next = row;
    while (next < rows_.size() && rows_[next].offset < begin + (1ULL << index.shift)) ++next;
    word(PK_BLOCK_WORDS + page) = (first_row + row) | (next - row) << 32;
  }
}

}  // namespace pkprof
