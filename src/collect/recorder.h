// SPDX-License-Identifier: Apache-2.0
// From the kernel side's tables to a Profile.
//
// Tables come every second or so while a recording runs. Addresses are resolved then, while the
// processes and their files are most likely still there; who is served, and who is selected, is
// settled at the end, when all that is to be known of owners and of descent is known.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/interrupts.h"
#include "collect/kernel_side.h"
#include "collect/measured.h"
#include "collect/parties.h"
#include "collect/processes.h"
#include "collect/row.h"
#include "collect/spread.h"
#include "model/profile.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class Recorder {
 public:
  Recorder(const KernelSymbols* kernel, UserSymbols& user, Processes& processes,
           uint64_t period_ns);

  // A later state of the kernel's symbols, for what was not there before: our own programs.
  void add_kernel_symbols(const KernelSymbols* kernel) { later_kernel_ = kernel; }
  void add(const KernelSide::Tables& tables);
  // Charges samples of pauses of the hooks; the `last` time, all of them.
  void settle_unwatched(bool last);
  // Charges what is on objects to those they are for, as far as that is known by now. Returns how
  // many are still without.
  using PartiesOf = std::function<std::vector<Parties::Share>(uint64_t object)>;
  size_t resolve_owners(const PartiesOf& parties_of);
  void add_charge(uint64_t object, const pk_charge& charge);  // left in a slot at the end
  void add_nobody(const pk_charge& charge);                   // left in a CPU's account
  void add_exact(const pk_exact& exact);                      // left with a CPU
  void add_special(uint64_t special, uint64_t ns);            // time that no sample stands for

  // Moves everything into the profile, and forgets it. `selected` decides by label; the rest is
  // OTHER.
  void finish(Profile& profile, const std::function<bool(uint64_t)>& selected);

 private:
  struct StackKey {
    uint64_t stack;
    uint64_t image;
    bool operator==(const StackKey&) const = default;
  };
  struct StackKeyHash {
    size_t operator()(const StackKey& k) const {
      return k.stack ^ (k.image * 0x9e3779b97f4a7c15ULL);
    }
  };
  // Frames are kept in a Profile of their own until finish() knows which are wanted.
  using Frames = std::vector<FrameId>;

  void count(const Row& row, const pk_count& count);
  const Frames& kernel_frames(uint64_t stack);
  // Of an interrupt: the function that was called.
  const Frames& interrupt_frames(uint64_t function);
  const Frames& user_frames(uint64_t stack, uint64_t image);
  FrameId kernel_frame(uint64_t address);
  std::string source_of(const pk_key& key, const Label& ran_on, const Frames& kernel);
  std::string interrupt_source(const pk_key& key, const Frames& kernel);
  std::string function_name(FrameId frame) const;
  std::string work_name(const pk_key& key);
  LabelId served_label(Profile& p, const pk_key& key, const Label& ran_on, const Frames& kernel);
  // The thread that a label is of, with its name in the profile; 0 for none.
  uint32_t name_thread(Profile& profile, LabelId process, uint64_t label) const;

  const KernelSymbols* kernel_;
  const KernelSymbols* later_kernel_ = nullptr;
  UserSymbols& user_;
  Processes& processes_;
  Profile scratch_;                                             // its frame tables only
  std::unordered_map<uint64_t, std::vector<uint64_t>> stacks_;  // raw, leaf first
  std::unordered_map<uint64_t, FrameId> kernel_frame_;
  std::unordered_map<uint64_t, Frames> kernel_frames_;
  std::unordered_map<uint64_t, Frames> interrupt_frames_;
  std::unordered_map<StackKey, Frames, StackKeyHash> user_frames_;
  std::unordered_map<Row, pk_count, RowHash> rows_;
  InterruptNames interrupts_;
  Spread spread_;
};

}  // namespace pkprof
