// SPDX-License-Identifier: Apache-2.0
// What is in no table: accounts that are open, exact time that was not told yet, time without
// samples.
#include "attribution/recorder.h"

#include <algorithm>

namespace pkprof {

Row Recorder::row_of(const pk_charge& charge) {
  Row row{};
  row.key.ran_on = charge.ran_on;
  row.key.kstack = charge.kstack;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.kind = charge.kind;
  row.key.vec = charge.vec;
  row.slot = is_of_cpu(row.key) ? timeline_.now() : 0;
  if (has_kernel_stack(row.key)) stacks_.meet(row.key.kstack);
  meet_peer(row.key);
  return row;
}

void Recorder::add_leftovers(const Leftovers& left) {
  for (const auto& [object, charge] : left.slots) add_charge(object, charge);
  for (const pk_charge& charge : left.waiting) add_nobody(charge);
  for (const pk_exact& exact : left.exact) add_exact(exact);
}

void Recorder::add_charge(uint64_t object, const pk_charge& charge) {
  Row row = row_of(charge);
  row.key.served = object;
  row.key.served_kind = PK_SERVED_OBJECT;
  row.key.reason = charge.reason;
  row.key.basis = PK_BASIS_OWNER;
  count(row, scaled(row.key, charge.ns, charge.samples));
}

void Recorder::add_nobody(const pk_charge& charge) {
  Row row = row_of(charge);
  row.key.served = PK_UNCLAIMED + charge.reason;
  row.key.basis = PK_BASIS_PROVISIONAL;
  count(row, scaled(row.key, charge.ns, charge.samples));
}

void Recorder::add_exact(const pk_exact& exact) {
  Row row{{}, timeline_.now()};
  row.key.ran_on = exact.ran_on;
  row.key.served = exact.served;
  row.key.served_kind = exact.served & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
  row.key.function = exact.function;
  row.key.number = exact.number;
  row.key.kind = exact.kind < PK_EXACT_RUN ? PK_INTERRUPT : PK_MEASURED;
  row.key.exact_kind = exact.kind;
  row.key.basis = exact.basis;
  row.key.reason = PK_UNTRACKED;
  row.key = clients_.told_apart(row.key);
  count(row, {scale_(exact.ns), exact.count});
}

void Recorder::add_special(uint64_t special, uint64_t ns) {
  Row row{};
  row.key.ran_on = special == PK_IDLE ? PK_IDLE : PK_KERNEL;
  row.key.served = special;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.kind = special == PK_IDLE ? PK_IDLING : PK_OWN;
  rows_[row].ns += scale_(ns);
}

void Recorder::add_idle_so_far(uint64_t ns) {
  add_special(PK_IDLE, ns);
  for (auto& [row, count] : rows_) {
    if (!idle_ahead_ns_) break;
    if (row.key.kind != PK_IDLING) continue;
    const uint64_t again = std::min<uint64_t>(count.ns, idle_ahead_ns_);
    count.ns -= again;
    idle_ahead_ns_ -= again;
  }
  idle_ahead_ns_ += ns;
}

}  // namespace pkprof
