// SPDX-License-Identifier: Apache-2.0
// What the kernel side counts, and how it is read.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "base/result.h"
#include "kernel/counted.h"
#include "kernel/object/kernel_options.h"
#include "kernel/object/table_pair.h"

namespace pkprof {

class CallCounting;
class KernelObject;
class SamplingClocks;
enum class Keep : bool;  // see read_table()

// Entries of the tables. One that is filled for a second: each sample may bring a row of its own
// and two stacks. Entries are made as they are needed, a stack's is a kilobyte; room for one costs
// 16 bytes.
struct TableRoom {
  uint32_t counts = 0;
  uint32_t stacks = 0;
};
[[nodiscard]] TableRoom table_room(const KernelSideOptions& options, uint32_t cpus);

class KernelTables {
 public:
  KernelTables(KernelObject& object, SamplingClocks& clocks, CallCounting& calls)
      : object_(object), clocks_(clocks), calls_(calls) {}

  // Before the object is loaded with them.
  Result<> make();
  // The first ones, also while it is being loaded.
  Result<> put_in_use();
  // Where entries are made when they are needed, the first ones are made now. See pk_warm in
  // account.bpf.c.
  Result<> warm();
  // Those of a recording that goes on without us.
  void use_pinned(TablePair counts, TablePair stacks);

  // What was counted so far, but for the stacks; after this the kernel side fills empty ones.
  Result<Tables> take();
  // The stack of this number, leaf first, where it was counted up to the last take() or the one
  // before; empty: it is not known.
  [[nodiscard]] CountedStack stack(uint64_t number) const;
  [[nodiscard]] Leftovers take_leftovers();

  // All since the start or the last reset, as it is now; it stays. The tables are read in turn:
  // the ones not in use, then these are used, and what was in use is read.
  Result<Tables> snapshot();
  [[nodiscard]] Leftovers snapshot_leftovers();
  // Counting begins anew. What is known of work in flight stays, but for the time it had taken.
  Result<> reset();

  [[nodiscard]] uint32_t rows() const;  // of the table of counts in use
  [[nodiscard]] const TablePair& counts() const { return counts_; }
  [[nodiscard]] const TablePair& stacks() const { return stacks_; }

 private:
  Result<> use_both(int which, std::launch stacks_update);
  Result<> use(int which, std::launch stacks_update, uint32_t rows = 0);
  Result<> use_other_counts();
  Result<> use_other_stacks();
  Result<> read_counts(int which, Keep keep, Tables& out);
  Result<> read_counts_and_stacks(int which, Keep keep, Tables& out);
  Result<> read_labels_and_votes(Keep keep, Tables& out);
  Result<> forget_labels();
  [[nodiscard]] Leftovers read_leftovers(Keep keep) const;

  KernelObject& object_;
  SamplingClocks& clocks_;
  CallCounting& calls_;
  TablePair counts_;
  TablePair stacks_;
};

}  // namespace pkprof
