// SPDX-License-Identifier: Apache-2.0
// What a row is called: its source, whom it ran on and whom it served, in a profile's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attribution/clients.h"
#include "attribution/interrupts.h"
#include "attribution/row.h"
#include "attribution/stacks.h"
#include "attribution/usage/lock_names.h"
#include "attribution/usage/peers.h"
#include "attribution/wakeups.h"
#include "model/profile.h"
#include "process/processes.h"

namespace pkprof {

class RowNames {
 public:
  using Frames = Stacks::Frames;
  using Selected = std::function<bool(uint64_t)>;  // by label

  RowNames(Stacks& stacks, Processes& processes, const Clients& clients, const Wakeups& wakeups,
           const Peers& peers, const LockNames& lock_names)
      : stacks_(stacks),
        processes_(processes),
        clients_(clients),
        wakeups_(wakeups),
        peers_(peers),
        lock_names_(lock_names) {}

  struct Told {
    SampleKey key;  // but for the stack
    std::string source;
    // Of an interrupt and of calls, which have no stack: what was called, and from where.
    std::vector<FrameId> functions;
    Frames kernel;     // its kernel stack, or `functions`
    std::string lock;  // of the kernel, that was waited for; "" else
    bool served_other = false;
  };
  // Whoever is not `selected` is OTHER. Labels and names are added to `profile`.
  Told tell(Profile& profile, const Row& row, const Selected& selected);

  // What is a row of its own for its stack alone becomes one with others. Where the source is read
  // off the stack, as much of it stays as tells that.
  [[nodiscard]] Row without_stacks(const Row& row);

 private:
  std::string source_of(const pk_key& key, const Label& ran_on, Frames kernel);
  [[nodiscard]] std::vector<std::string_view> functions_on(Frames kernel) const;
  std::string wait_source(const pk_key& key, Frames kernel) const;
  [[nodiscard]] Label label_of_ran_on(const pk_key& key) const;
  std::string interrupt_source(const pk_key& key, Frames kernel);
  std::string function_name(FrameId frame) const;
  std::string work_name(const pk_key& key);
  std::vector<FrameId> functions_of(const pk_key& key);
  LabelId served_label(Profile& p, const pk_key& key, const Label& ran_on, Frames kernel);
  // The thread that a label is of, with its name in the profile; 0 for none.
  uint32_t name_thread(Profile& profile, LabelId process, uint64_t label) const;

  Stacks& stacks_;
  Processes& processes_;
  const Clients& clients_;
  const Wakeups& wakeups_;
  const Peers& peers_;
  const LockNames& lock_names_;
  InterruptNames interrupts_;
};

}  // namespace pkprof
