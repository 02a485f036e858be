// SPDX-License-Identifier: Apache-2.0
// Tables of real files, judged by libdw's own reading of the same.
#include "unwind/unwind_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "pkprof/user_abi.h"
#include "symbol/elf/elf_cfi.h"
#include "symbol/maps.h"

namespace pkprof {
namespace {

// This program and its libraries.
std::vector<std::string> files() {
  std::ifstream in("/proc/self/maps");
  std::stringstream text;
  text << in.rdbuf();
  std::vector<std::string> files;
  for (const UserMap& map : parse_maps(text.str()).executable)
    if (map.file.starts_with('/')) files.push_back(map.file);
  return files;
}

Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The rule as the kernel side finds it.
uint32_t searched(const std::vector<pk_unwind_block>& blocks, uint64_t offset) {
  const auto word = [&](uint64_t n) { return blocks[n / PK_BLOCK_WORDS].word[n % PK_BLOCK_WORDS]; };
  if (offset < word(PK_HEAD_FIRST)) return PK_RULE(PK_BY_NOTHING, 0, 0);
  const uint64_t page = (offset - word(PK_HEAD_FIRST)) >> word(PK_HEAD_SHIFT);
  if (page >= word(PK_HEAD_PAGES)) return PK_RULE(PK_BY_NOTHING, 0, 0);
  uint64_t row = word(PK_BLOCK_WORDS + page);
  uint64_t more = row >> 32;
  row = static_cast<uint32_t>(row);
  while (more) {
    const uint64_t half = (more + 1) / 2;
    if (word(row + half) >> 32 <= offset) {
      row += half;
      more -= half;
    } else {
      more = half - 1;
    }
  }
  return static_cast<uint32_t>(word(row));
}

TEST(UnwindTableTest, IsSearchedByPages) {
  for (const std::string& path : files()) {
    const auto table = UnwindTable::read(open_file(path));
    ASSERT_TRUE(table) << table.error().message;
    std::vector<pk_unwind_block> blocks(table->blocks());
    table->lay_out(blocks);
    ASSERT_FALSE(table->empty()) << path;
    const uint64_t end = table->rows().back().offset + 4096;
    for (uint64_t offset = 0; offset < end; offset += 1 + offset % 13)
      ASSERT_EQ(searched(blocks, offset), table->rule_at(offset)) << path << " " << offset;
  }
}

TEST(UnwindTableTest, OfNothingIsEmpty) {
  const UnwindTable none;
  ASSERT_EQ(none.blocks(), 1U);
  std::vector<pk_unwind_block> blocks(1);
  none.lay_out(blocks);
  EXPECT_EQ(searched(blocks, 0x1000), PK_RULE(PK_BY_NOTHING, 0, 0));
  EXPECT_FALSE(UnwindTable::of_image("no ELF file"));
}

// What a rule says of the CFA, in libdw's words; "" where those are of another kind.
std::string cfa_of(uint32_t rule) {
  const long bytes = 8L * PK_RULE_WORD(rule);
  switch (PK_RULE_KIND(rule)) {
    case PK_BY_SP:
      return "7+" + std::to_string(bytes);
    case PK_BY_FP:
      return "6+" + std::to_string(bytes);
    default:
      return "";
  }
}

struct Judged {
  std::string cfa;  // register+offset
  std::string fp;   // offset from the CFA, or "kept"
};

Judged judge(Dwarf_CFI* cfi, uint64_t address) {
  Judged judged;
  Dwarf_Frame* frame = nullptr;
  if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) return {"none", ""};
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> free(frame, &std::free);
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1 && ops->atom == DW_OP_bregx)
    judged.cfa = std::to_string(ops->number) + "+" + std::to_string(long(ops->number2));
  else if (count == 1 && ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31)
    judged.cfa = std::to_string(ops->atom - DW_OP_breg0) + "+" + std::to_string(long(ops->number));
  Dwarf_Op memory[3];
  if (dwarf_frame_register(frame, 6, memory, &ops, &count) == 0) {
    if (count == 0)
      judged.fp = "kept";
    else if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst)
      judged.fp = std::to_string(static_cast<long>(ops[1].number));
  }
  return judged;
}

TEST(UnwindTableTest, SaysWhatLibdwSays) {
  std::mt19937_64 random(1);
  size_t compared = 0;
  for (const std::string& path : files()) {
    auto elf = ElfHandle::open(open_file(path));
    ASSERT_TRUE(elf) << elf.error().message;
    const std::vector<CfiRow> rows = read_cfi_rows(*elf, 1 << 24);
    const std::vector<CfiFunction> functions = read_cfi_functions(*elf, 1 << 24);
    ASSERT_FALSE(functions.empty()) << path;
    Dwarf_CFI* cfi = dwarf_getcfi_elf(elf->elf());
    ASSERT_NE(cfi, nullptr) << path;
    for (int i = 0; i < 3000; ++i) {
      const CfiFunction& f = functions[random() % functions.size()];
      const uint64_t address = f.start + random() % (f.end - f.start);
      const auto after = std::ranges::upper_bound(rows, address, {}, &CfiRow::address);
      ASSERT_NE(after, rows.begin());
      const uint32_t rule = (after - 1)->rule;
      const std::string cfa = cfa_of(rule);
      if (cfa.empty()) continue;
      const Judged want = judge(cfi, address);
      ASSERT_EQ(cfa, want.cfa) << path << " " << std::hex << address;
      const int fp = PK_RULE_FP_WORD(rule);
      ASSERT_EQ(fp == PK_FP_KEPT ? "kept" : std::to_string(8 * fp), want.fp)
          << path << " " << std::hex << address;
      ++compared;
    }
    dwarf_cfi_end(cfi);
  }
  EXPECT_GT(compared, 10'000U);
}

// Where a function's rows are damaged, those of others are not.
TEST(UnwindTableTest, SurvivesDamage) {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  const std::string image = bytes.str();
  std::mt19937_64 random(2);
  for (int i = 0; i < 8; ++i) {
    std::string damaged = image;
    for (int k = 0; k < 2000; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto table = UnwindTable::of_image(std::move(damaged));
    if (!table) continue;
    std::vector<pk_unwind_block> blocks(table->blocks());
    table->lay_out(blocks);
    for (size_t k = 1; k < table->rows().size(); ++k)
      ASSERT_LT(table->rows()[k - 1].offset, table->rows()[k].offset);
  }
}

}  // namespace
}  // namespace pkprof
