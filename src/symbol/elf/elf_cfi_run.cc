// SPDX-License-Identifier: Apache-2.0
#include "symbol/elf/elf_cfi_run.h"

#include <initializer_list>

#include "pkprof/user_abi.h"

namespace pkprof::cfi {
namespace {

// Expressions are of a few forms, which compilers and linkers agreed on.
Place place_of(std::span<const uint8_t> expression) {
  const auto is = [&](std::initializer_list<int> form) {  // -1: any
    return std::ranges::equal(expression, form,
                              [](uint8_t byte, int want) { return want < 0 || byte == want; });
  };
  // Which half of an entry of a procedure linkage table it is: the address's low bits tell.
  if (is({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, -1, DW_OP_ge, DW_OP_lit3,
          DW_OP_shl, DW_OP_plus}) &&
      expression[6] >= DW_OP_lit0 && expression[6] <= DW_OP_lit15)
    return {.how = Place::How::plt, .offset = expression[6] - DW_OP_lit0};
  Bytes bytes(expression.data(), expression.data() + expression.size());
  const auto base = bytes.fixed<uint8_t>();
  const int64_t offset = bytes.sleb();
  if (bytes.fixed<uint8_t>() != DW_OP_deref || bytes.failed()) return {};
  if (base == DW_OP_breg6 && !bytes.more())
    return {.how = Place::How::word_at_fp, .offset = offset};
  if (base != DW_OP_breg7) return {};
  // A signal's frame, where the word is the stack pointer itself.
  if (!bytes.more()) return {.how = Place::How::word_at_sp, .reg = 1, .offset = offset};
  if (bytes.fixed<uint8_t>() == DW_OP_plus_uconst && bytes.uleb() == 8 && !bytes.more() &&
      !bytes.failed())
    return {.how = Place::How::word_at_sp, .offset = offset};
  return {};
}

std::optional<int64_t> words_of(int64_t bytes, int64_t limit) {
  if (bytes % 8 || bytes / 8 >= limit || bytes / 8 < -limit) return std::nullopt;
  return bytes / 8;
}

int64_t fp_word(const Saved& fp) {
  if (fp.how == Saved::How::kept) return PK_FP_KEPT;
  if (fp.how == Saved::How::at_fp) return PK_FP_AT_FP;
  if (fp.how != Saved::How::below_cfa) return PK_FP_LOST;
  const auto words = words_of(fp.offset, PK_RULE_FP);
  if (words && *words != PK_FP_KEPT && *words > PK_FP_AT_FP) return *words;
  return PK_FP_LOST;
}

}  // namespace

// A pointer as the low half of DW_EH_PE_* says; none for what has no meaning here.
std::optional<uint64_t> read_encoded(Bytes& bytes, uint8_t encoding) {
  switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return bytes.fixed<uint64_t>();
    case DW_EH_PE_uleb128:
      return bytes.uleb();
    case DW_EH_PE_sleb128:
      return static_cast<uint64_t>(bytes.sleb());
    case DW_EH_PE_udata2:
      return bytes.fixed<uint16_t>();
    case DW_EH_PE_sdata2:
      return static_cast<uint64_t>(int64_t{bytes.fixed<int16_t>()});
    case DW_EH_PE_udata4:
      return bytes.fixed<uint32_t>();
    case DW_EH_PE_sdata4:
      return static_cast<uint64_t>(int64_t{bytes.fixed<int32_t>()});
    default:
      return std::nullopt;
  }
}

uint32_t rule_of(const State& state, bool signal) {
  const Place& cfa = state.cfa;
  constexpr uint32_t other = PK_RULE(PK_BY_OTHER, 0, 0);
  if (state.ra.how == Saved::How::never) return PK_RULE(PK_BY_END, 0, 0);
  if (signal)
    return cfa.how == Place::How::word_at_sp && cfa.reg && cfa.offset == PK_SIGNAL_SP
               ? PK_RULE(PK_BY_SIGNAL, 0, 0)
               : other;
  const int64_t fp = fp_word(state.fp);
  if (cfa.how == Place::How::plt) return PK_RULE(PK_BY_PLT, cfa.offset, fp);
  const bool in_register = state.ra.how == Saved::How::in_register;
  const bool numbered = in_register || (cfa.how == Place::How::register_ &&
                                        cfa.reg != stack_pointer && cfa.reg != frame_pointer);
  const auto words = words_of(cfa.offset, numbered ? PK_RULE_WORDS / 16 : PK_RULE_WORDS);
  if (!words) return other;
  if (in_register) {
    if (cfa.how != Place::How::register_ || cfa.reg != stack_pointer || state.ra.offset > 15)
      return other;
    return PK_RULE(PK_BY_RETURN, PK_RULE_REGISTER(*words, state.ra.offset), fp);
  }
  if (state.ra.how != Saved::How::below_cfa || state.ra.offset != -8) return other;
  switch (cfa.how) {
    case Place::How::word_at_fp:
      return PK_RULE(PK_BY_WORD_AT_FP, *words, fp);
    case Place::How::word_at_sp:
      return cfa.reg ? other : PK_RULE(PK_BY_WORD_AT_SP, *words, fp);
    case Place::How::register_:
      break;
    default:
      return other;
  }
  if (cfa.reg == stack_pointer) return PK_RULE(PK_BY_SP, *words, fp);
  if (cfa.reg == frame_pointer) return PK_RULE(PK_BY_FP, *words, fp);
  if (cfa.reg > 15) return other;
  return PK_RULE(PK_BY_REGISTER, PK_RULE_REGISTER(*words, cfa.reg), fp);
}

bool Run::change(uint8_t op, Bytes& bytes) {
  constexpr size_t most_remembered = 64;
  if ((op & 0xc0) == DW_CFA_offset) {
    save_below(op & 0x3f, static_cast<int64_t>(bytes.uleb()));
    return true;
  }
  if ((op & 0xc0) == DW_CFA_restore) {
    restore(op & 0x3f);
    return true;
  }
  Place& cfa = state_.cfa;
  const auto set_register = [&](uint64_t reg) {
    if (cfa.how != Place::How::register_) cfa = {.how = Place::How::register_};
    cfa.reg = reg;
  };
  switch (op) {
    case DW_CFA_nop:
      return true;
    case DW_CFA_def_cfa:
      set_register(bytes.uleb());
      cfa.offset = static_cast<int64_t>(bytes.uleb());
      return true;
    case DW_CFA_def_cfa_sf:
      set_register(bytes.uleb());
      cfa.offset = bytes.sleb() * cie_.data_factor;
      return true;
    case DW_CFA_def_cfa_register:
      set_register(bytes.uleb());
      return true;
    case DW_CFA_def_cfa_offset:
      cfa.offset = static_cast<int64_t>(bytes.uleb());
      return true;
    case DW_CFA_def_cfa_offset_sf:
      cfa.offset = bytes.sleb() * cie_.data_factor;
      return true;
    case DW_CFA_def_cfa_expression:
      cfa = place_of(bytes.take(bytes.uleb()));
      return true;
    case DW_CFA_offset_extended: {
      const uint64_t reg = bytes.uleb();
      save_below(reg, static_cast<int64_t>(bytes.uleb()));
      return true;
    }
    case DW_CFA_offset_extended_sf: {
      const uint64_t reg = bytes.uleb();
      save_below(reg, bytes.sleb());
      return true;
    }
    case DW_CFA_GNU_negative_offset_extended: {
      const uint64_t reg = bytes.uleb();
      save_below(reg, -static_cast<int64_t>(bytes.uleb()));
      return true;
    }
    case DW_CFA_restore_extended:
      restore(bytes.uleb());
      return true;
    case DW_CFA_undefined:
      save(bytes.uleb(), {Saved::How::never, 0});
      return true;
    case DW_CFA_same_value:
      save(bytes.uleb(), {Saved::How::kept, 0});
      return true;
    case DW_CFA_register: {
      const uint64_t reg = bytes.uleb();
      save(reg, {Saved::How::in_register, static_cast<int64_t>(bytes.uleb() & 0xff)});
      return true;
    }
    case DW_CFA_expression: {
      const uint64_t reg = bytes.uleb();
      const std::span<const uint8_t> at = bytes.take(bytes.uleb());
      const bool at_fp = at.size() == 2 && at[0] == DW_OP_breg6 && at[1] == 0;
      save(reg, {at_fp ? Saved::How::at_fp : Saved::How::lost, 0});
      return true;
    }
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_val_expression: {
      const uint64_t reg = bytes.uleb();
      const uint64_t what = bytes.uleb();  // signed or not, it is as long
      if (op == DW_CFA_val_expression) bytes.take(what);
      save(reg, {Saved::How::lost, 0});
      return true;
    }
    case DW_CFA_remember_state:
      if (remembered_.size() >= most_remembered) return false;
      remembered_.push_back(state_);
      return true;
    case DW_CFA_restore_state:
      if (remembered_.empty()) return false;
      state_ = remembered_.back();
      remembered_.pop_back();
      return true;
    case DW_CFA_GNU_args_size:
      bytes.uleb();
      return true;
    default:
      return false;
  }
}

}  // namespace pkprof::cfi
