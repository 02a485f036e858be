// SPDX-License-Identifier: Apache-2.0
// What an entry of call frame information says of each address, followed once through: a part of
// elf_cfi.h.
#pragma once

#include <dwarf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace pkprof::cfi {

// DWARF's numbers of registers on x86-64.
enum Register : uint8_t { frame_pointer = 6, stack_pointer = 7, return_address = 16 };

// The bytes of an entry, in order; once more is asked for than there is, it has failed.
class Bytes {
 public:
  Bytes(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(std::max(begin, end)) {}

  [[nodiscard]] bool more() const { return !failed_ && at_ < end_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const uint8_t* at() const { return at_; }

  template <typename T>
  T fixed() {
    T value{};
    const std::span<const uint8_t> from = take(sizeof(T));
    if (from.size() == sizeof(T)) std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      if (!(byte & 0x80)) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0;
    do {
      byte = fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && byte & 0x40) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  std::span<const uint8_t> take(uint64_t count) {
    if (failed_ || count > static_cast<uint64_t>(end_ - at_)) {
      failed_ = true;
      return {};
    }
    const std::span<const uint8_t> taken(at_, count);
    at_ += count;
    return taken;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  bool failed_ = false;
};

// A pointer as the low half of DW_EH_PE_* says; none for what has no meaning here.
std::optional<uint64_t> read_encoded(Bytes& bytes, uint8_t encoding);

// Where a register's value at the call lies.
struct Saved {
  enum class How : uint8_t { kept, below_cfa, at_fp, in_register, never, lost };
  How how = How::kept;
  int64_t offset = 0;  // from the CFA, bytes; or the register
  bool operator==(const Saved&) const = default;
};

struct Place {
  enum class How : uint8_t { register_, plt, word_at_fp, word_at_sp, other };
  How how = How::other;
  uint64_t reg = 0;
  int64_t offset = 0;  // bytes; of plt: of an entry
};

struct State {
  Place cfa;
  Saved fp;
  Saved ra;
};

struct Cie {
  State initial;
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t encoding = DW_EH_PE_absptr;
  bool sized = false;   // entries say how long their augmentation is
  bool signal = false;  // of frames that a signal made
};

// PK_RULE() of a frame in that state.
uint32_t rule_of(const State& state, bool signal);

// Follows the instructions of an entry. `moved` is told of each address that they advance to;
// false: they are damaged, or there is no end to it.
class Run {
 public:
  Run(const Cie& cie, State initial, uint64_t address)
      : cie_(cie), initial_(initial), state_(initial), address_(address) {}

  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] uint64_t address() const { return address_; }

  template <typename Moved>
  bool follow(Bytes bytes, Moved&& moved) {
    while (bytes.more()) {
      const auto op = bytes.fixed<uint8_t>();
      if (const auto by = advance(op, bytes)) {
        if (*by && !moved()) return false;
        address_ += *by;
      } else if (!change(op, bytes)) {
        return false;
      }
    }
    return !bytes.failed();
  }

  // An address is told as a whole, and not how far it is.
  [[nodiscard]] std::optional<uint64_t> advance(uint8_t op, Bytes& bytes) const {
    if ((op & 0xc0) == DW_CFA_advance_loc) return (op & 0x3fU) * cie_.code_factor;
    switch (op) {
      case DW_CFA_advance_loc1:
        return bytes.fixed<uint8_t>() * cie_.code_factor;
      case DW_CFA_advance_loc2:
        return bytes.fixed<uint16_t>() * cie_.code_factor;
      case DW_CFA_advance_loc4:
        return bytes.fixed<uint32_t>() * cie_.code_factor;
      case DW_CFA_MIPS_advance_loc8:
        return bytes.fixed<uint64_t>() * cie_.code_factor;
      case DW_CFA_set_loc: {
        const auto to = read_encoded(bytes, cie_.encoding);
        // It is relative to what nobody uses it with.
        if (!to || cie_.encoding & 0x70) return std::nullopt;
        return *to - address_;
      }
      default:
        return std::nullopt;
    }
  }

 private:
  void save(uint64_t reg, Saved saved) {
    if (reg == frame_pointer) state_.fp = saved;
    if (reg == return_address) state_.ra = saved;
  }
  void restore(uint64_t reg) {
    if (reg == frame_pointer) state_.fp = initial_.fp;
    if (reg == return_address) state_.ra = initial_.ra;
  }
  void save_below(uint64_t reg, int64_t factored) {
    save(reg, {Saved::How::below_cfa, factored * cie_.data_factor});
  }
  bool change(uint8_t op, Bytes& bytes);

  const Cie& cie_;
  State initial_;
  State state_;
  uint64_t address_;
  std::vector<State> remembered_;
};

}  // namespace pkprof::cfi
