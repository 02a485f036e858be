// SPDX-License-Identifier: Apache-2.0
#include "unwind/stack_walk.h"

#include <cstring>

namespace pkprof {
namespace {

class Walk {
 public:
  explicit Walk(const StackTop& top) : top_(top), ip_(top.ip), sp_(top.sp), fp_(top.fp) {
    exact_ = top.exact;
  }

  // By which its rule is found.
  [[nodiscard]] uint64_t address() const { return exact_ ? ip_ : ip_ - 1; }
  // To the caller; else why not.
  std::optional<pk_stack_end> leave(uint32_t rule);

 private:
  [[nodiscard]] std::optional<uint64_t> word(uint64_t at) const {
    const uint64_t offset = at - top_.sp;
    uint64_t value = 0;
    if (offset > top_.bytes.size() || top_.bytes.size() - offset < sizeof(value))
      return std::nullopt;
    std::memcpy(&value, top_.bytes.data() + offset, sizeof(value));
    return value;
  }
  [[nodiscard]] std::optional<uint64_t> cfa(uint32_t rule) const;
  std::optional<pk_stack_end> leave_by_fp();
  std::optional<pk_stack_end> leave_signal();
  std::optional<pk_stack_end> arrive(uint64_t ip, uint64_t sp, uint64_t fp, bool exact = false) {
    ip_ = ip;
    sp_ = sp;
    fp_ = fp;
    exact_ = exact;
    return ip ? std::nullopt : std::optional(PK_STACK_WHOLE);
  }

  const StackTop& top_;
  uint64_t ip_;
  uint64_t sp_;
  uint64_t fp_;
  bool exact_ = false;
};

std::optional<uint64_t> Walk::cfa(uint32_t rule) const {
  const auto bytes = static_cast<uint64_t>(int64_t{PK_RULE_WORD(rule)} * 8);
  switch (PK_RULE_KIND(rule)) {
    case PK_BY_SP:
      return sp_ + bytes;
    case PK_BY_FP:
      return fp_ + bytes;
    case PK_BY_PLT:
      return sp_ + (static_cast<int64_t>(ip_ & 15) >= PK_RULE_WORD(rule) ? 16 : 8);
    case PK_BY_WORD_AT_FP:
      return word(fp_ + bytes);
    case PK_BY_WORD_AT_SP:
      if (const auto at = word(sp_ + bytes)) return *at + 8;
      return std::nullopt;
    default:
      return std::nullopt;  // it is in a register that is not known here
  }
}

std::optional<pk_stack_end> Walk::leave_by_fp() {
  constexpr uint64_t alignment = 8;
  if (!fp_) return exact_ ? PK_STACK_NO_CFI : PK_STACK_WHOLE;
  const auto fp = word(fp_);
  const auto ip = word(fp_ + 8);
  if (fp_ % alignment || !fp || !ip || *fp == fp_) return PK_STACK_NO_CFI;
  return arrive(*ip, fp_ + 16, *fp);
}

std::optional<pk_stack_end> Walk::leave_signal() {
  const auto fp = word(sp_ + PK_SIGNAL_FP);
  const auto sp = word(sp_ + PK_SIGNAL_SP);
  const auto ip = word(sp_ + PK_SIGNAL_IP);
  if (!fp || !sp || !ip) return PK_STACK_UNREADABLE;
  return arrive(*ip, *sp, *fp, true);
}

std::optional<pk_stack_end> Walk::leave(uint32_t rule) {
  switch (PK_RULE_KIND(rule)) {
    case PK_BY_END:
      return PK_STACK_WHOLE;
    case PK_BY_SIGNAL:
      return leave_signal();
    case PK_BY_NOTHING:
    case PK_BY_OTHER:
      return leave_by_fp();
    default:
      break;
  }
  const auto cfa = this->cfa(rule);
  if (!cfa) return PK_STACK_UNREADABLE;
  if (*cfa <= sp_) return PK_STACK_ASTRAY;
  const auto ip = word(*cfa - 8);
  std::optional<uint64_t> fp = fp_;
  const int32_t fp_word = PK_RULE_FP_WORD(rule);
  if (fp_word == PK_FP_LOST)
    fp = 1;  // leads nowhere
  else if (fp_word == PK_FP_AT_FP)
    fp = word(fp_);
  else if (fp_word != PK_FP_KEPT)
    fp = word(*cfa + static_cast<uint64_t>(int64_t{fp_word} * 8));
  if (!ip || !fp) return PK_STACK_UNREADABLE;
  return arrive(*ip, *cfa, *fp);
}

}  // namespace

pk_stack_end walk_on(StackTop top, const RuleAt& rule_at, size_t most_frames,
                     std::vector<uint64_t>& frames) {
  Walk walk(top);
  for (bool first = true;; first = false) {
    const auto rule = rule_at(walk.address());
    if (!rule) {
      if (!first) frames.pop_back();
      return PK_STACK_ASTRAY;
    }
    if (const auto end = walk.leave(*rule)) return *end;
    if (frames.size() >= most_frames) return PK_STACK_DEEP;
    frames.push_back(walk.address() + 1);
  }
}

}  // namespace pkprof
