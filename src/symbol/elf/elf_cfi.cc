// SPDX-License-Identifier: Apache-2.0
#include "symbol/elf/elf_cfi.h"

#include <elfutils/libdw.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "pkprof/user_abi.h"
#include "symbol/elf/elf_cfi_run.h"

namespace pkprof {
namespace {

using cfi::Bytes;
using cfi::Cie;
using cfi::Run;
using cfi::Saved;

constexpr uint64_t most_section = 512 << 20;

struct Section {
  Elf_Data* data = nullptr;
  uint64_t address = 0;     // the linker's
  bool is_eh_frame = true;  // or .debug_frame
};

struct Entry {
  CfiFunction code;
  size_t first = 0;  // of its rows
  size_t rows = 0;
};

struct Cfi {
  std::vector<CfiRow> rows;
  std::vector<CfiFunction> functions;
};

class Reader {
 public:
  Reader(const unsigned char* ident, size_t most, bool with_rows)
      : ident_(ident), most_(most), with_rows_(with_rows) {}

  void read(const Section& section);
  Cfi in_order();

 private:
  const Cie* cie_at(const Section& section, Dwarf_Off offset);
  static std::optional<Cie> parse(const Dwarf_CIE& cie);
  void add(const Section& section, const Dwarf_FDE& fde);

  const unsigned char* ident_;
  size_t most_;
  bool with_rows_;                                         // or functions alone
  std::unordered_map<uint64_t, std::optional<Cie>> cies_;  // of the section at hand
  std::vector<CfiRow> rows_;
  std::vector<Entry> entries_;
};

std::optional<Cie> Reader::parse(const Dwarf_CIE& from) {
  Cie cie;
  cie.code_factor = from.code_alignment_factor;
  cie.data_factor = from.data_alignment_factor;
  if (from.return_address_register != cfi::return_address) return std::nullopt;
  Bytes data(from.augmentation_data, from.augmentation_data + from.augmentation_data_size);
  for (const char c : std::string_view(from.augmentation)) {
    if (c == 'z') {
      cie.sized = true;
    } else if (c == 'S') {
      cie.signal = true;
    } else if (c == 'R') {
      cie.encoding = data.fixed<uint8_t>();
    } else if (c == 'L') {
      data.fixed<uint8_t>();
    } else if (c == 'P') {
      const auto encoding = data.fixed<uint8_t>();
      if ((encoding & 0x70) == DW_EH_PE_aligned || !cfi::read_encoded(data, encoding))
        return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (data.failed()) return std::nullopt;
  cie.initial.ra = {Saved::How::lost, 0};
  Run run(cie, cie.initial, 0);
  if (!run.follow({from.initial_instructions, from.initial_instructions_end}, [] { return false; }))
    return std::nullopt;
  cie.initial = run.state();
  return cie;
}

const Cie* Reader::cie_at(const Section& section, Dwarf_Off offset) {
  const auto [it, fresh] = cies_.try_emplace(offset);
  if (fresh) {
    Dwarf_CFI_Entry entry;
    Dwarf_Off next = 0;
    if (offset < section.data->d_size &&
        dwarf_next_cfi(ident_, section.data, section.is_eh_frame, offset, &next, &entry) == 0 &&
        dwarf_cfi_cie_p(&entry))
      it->second = parse(entry.cie);
  }
  return it->second ? &*it->second : nullptr;
}

void Reader::add(const Section& section, const Dwarf_FDE& fde) {
  const Cie* cie = cie_at(section, fde.CIE_pointer);
  if (!cie) return;
  Bytes bytes(fde.start, fde.end);
  const uint64_t at =
      section.address +
      static_cast<uint64_t>(fde.start - static_cast<const uint8_t*>(section.data->d_buf));
  const auto start = cfi::read_encoded(bytes, cie->encoding);
  const auto length = cfi::read_encoded(bytes, cie->encoding & 0x0f);
  if (!start || !length || cie->encoding & DW_EH_PE_indirect) return;
  const bool relative = (cie->encoding & 0x70) == DW_EH_PE_pcrel;
  if (!relative && (cie->encoding & 0x70) != DW_EH_PE_absptr) return;
  Entry entry{.code = {.start = *start + (relative ? at : 0)}, .first = rows_.size()};
  entry.code.end = entry.code.start + *length;
  if (cie->sized) bytes.take(bytes.uleb());
  if (bytes.failed() || entry.code.end <= entry.code.start) return;
  if (!with_rows_) return entries_.push_back(entry);
  Run run(*cie, cie->initial, entry.code.start);
  const auto put = [&] {
    const uint64_t least = rows_.size() > entry.first ? rows_.back().address : entry.code.start;
    if (rows_.size() >= most_ || run.address() >= entry.code.end || run.address() < least)
      return false;
    const uint32_t rule = cfi::rule_of(run.state(), cie->signal);
    if (rows_.size() == entry.first || rows_.back().rule != rule)
      rows_.push_back({run.address(), rule});
    return true;
  };
  // What comes after damage is not known.
  if (run.follow(bytes, put)) put();
  entry.rows = rows_.size() - entry.first;
  if (entry.rows) entries_.push_back(entry);
}

void Reader::read(const Section& section) {
  cies_.clear();
  Dwarf_CFI_Entry entry;
  for (Dwarf_Off offset = 0, next = 0; rows_.size() < most_ && entries_.size() < most_;
       offset = next) {
    const int result =
        dwarf_next_cfi(ident_, section.data, section.is_eh_frame, offset, &next, &entry);
    if (result > 0) return;
    if (next <= offset) return;  // the length is damaged
    if (result == 0 && !dwarf_cfi_cie_p(&entry)) add(section, entry.fde);
  }
}

// Between functions nothing is known.
Cfi Reader::in_order() {
  std::ranges::stable_sort(entries_, {}, [](const Entry& e) { return e.code.start; });
  Cfi cfi;
  cfi.rows.reserve(rows_.size());
  cfi.functions.reserve(entries_.size());
  const auto put = [&cfi](uint64_t address, uint32_t rule) {
    if (!cfi.rows.empty() && cfi.rows.back().address == address) cfi.rows.pop_back();
    if (cfi.rows.empty() || cfi.rows.back().rule != rule) cfi.rows.push_back({address, rule});
  };
  uint64_t covered = 0;
  for (const Entry& e : entries_) {
    if (e.code.end <= covered) continue;
    const CfiFunction code{std::max(e.code.start, covered), e.code.end};
    const std::span<const CfiRow> rows(rows_.data() + e.first, e.rows);
    const auto after =
        std::ranges::upper_bound(rows, code.start, {}, [](const CfiRow& r) { return r.address; });
    if (with_rows_) {
      put(code.start, (after == rows.begin() ? after : after - 1)->rule);
      for (auto row = after; row != rows.end(); ++row) put(row->address, row->rule);
      put(code.end, PK_RULE(PK_BY_NOTHING, 0, 0));
    }
    cfi.functions.push_back(code);
    covered = code.end;
  }
  return cfi;
}

Cfi read_all(const ElfHandle& elf, size_t most_rows, bool with_rows) {
  const char* ident = elf_getident(elf.elf(), nullptr);
  Reader reader(reinterpret_cast<const unsigned char*>(ident), most_rows, with_rows);
  if (elf.machine() != EM_X86_64) return {};
  for (const bool is_eh_frame : {true, false}) {
    const ElfSection* found = elf.section(is_eh_frame ? ".eh_frame" : ".debug_frame");
    Elf_Data* data = found ? elf.data(*found, most_section) : nullptr;
    if (data) reader.read({data, found->header.sh_addr, is_eh_frame});
  }
  return reader.in_order();
}

}  // namespace

std::vector<CfiRow> read_cfi_rows(const ElfHandle& elf, size_t most) {
  return read_all(elf, most, true).rows;
}

std::vector<CfiFunction> read_cfi_functions(const ElfHandle& elf, size_t most) {
  return read_all(elf, most, false).functions;
}

}  // namespace pkprof
