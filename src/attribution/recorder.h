// SPDX-License-Identifier: Apache-2.0
// From the kernel side's tables to a Profile.
//
// Tables come every second or so while a recording runs. Addresses are resolved then, while the
// processes and their files are most likely still there; who is served, and who is selected, is
// settled at the end, when all that is to be known of owners and of descent is known.
//
// Memory has bounds (RecorderLimits). At a bound the rows with the least time lose their stacks,
// and what has ended longest ago loses its pid (Processes::fold): no time is lost by either, and
// both are counted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "attribution/client_calls.h"
#include "attribution/clients.h"
#include "attribution/measured.h"
#include "attribution/parties.h"
#include "attribution/row.h"
#include "attribution/row_names.h"
#include "attribution/scale.h"
#include "attribution/stacks.h"
#include "attribution/timeline.h"
#include "attribution/usage/lock_names.h"
#include "attribution/usage/usage.h"
#include "attribution/wakeups.h"
#include "kernel/counted.h"
#include "model/profile.h"
#include "process/processes.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// What a recording may grow to before it is made smaller; between two readings of the tables it may
// be exceeded by what one of them holds. With these an hour of 200 new processes a second stays
// near 128 MiB (docs/SCALE.md), and 100,000 distinct stacks have room.
struct RecorderLimits {
  // With a stack: some 100 bytes each, and as much again in the profile. Those without are as many
  // as processes have sources.
  size_t rows = 112 << 10;
  size_t stack_frames = 6 << 20;  // of all stacks together: four bytes each
  size_t frames = 262144;         // distinct places in code: 40 bytes each, and the names
  size_t objects = 65536;         // rows whose owner is not known yet
  size_t cells = 65536;           // of the timeline; see shorten_timeline()
};

struct RecordedWaits {
  bool kept = true;    // as waits
  bool locks = false;  // those for locks of programs, as such
};

class Recorder {
 public:
  Recorder(const KernelSymbols* kernel, UserSymbols& user, Processes& processes,
           RecorderLimits limits = {});

  // A later state of the kernel's symbols, for what was not there before: our own programs.
  void add_kernel_symbols(Stacks::LaterSymbols later) {
    stacks_.add_kernel_symbols(std::move(later));
  }
  // Where servers' clients were asked for: the kernel side's table of them, to outlive this.
  void know_clients(std::span<const pk_client> table) { clients_.know(table); }
  // Where waits are counted: who ended them is asked there.
  [[nodiscard]] Wakeups& wakeups() { return wakeups_; }
  // Where bytes of networks are counted: who is at the other end is asked there.
  [[nodiscard]] Peers& peers() { return peers_; }
  // Where waiting for locks of the kernel is counted: what they are called is asked there.
  [[nodiscard]] LockNames& lock_names() { return lock_names_; }
  // Locks of programs are told by waits. Those may be wanted for that alone.
  void want(const RecordedWaits& waits) { waits_ = waits; }
  // A timeline is kept from here on, of slots of `slot_ns`: what is added is in this one, or in
  // equal parts in so many from this one on.
  void begin_slot(uint32_t slot, uint32_t slots, uint64_t slot_ns) {
    timeline_.begin(slot, slots, slot_ns);
  }
  // Time that is added from here on was watched for `watched_ns`, and stands for `all_ns`.
  void begin_scale(uint64_t watched_ns, uint64_t all_ns) {
    scale_ = Scale(watched_ns, all_ns);
    scale_times_ = scale_;
  }
  // So does all the time that was added so far.
  void scale_all(uint64_t watched_ns, uint64_t all_ns);
  // Samples by how their stacks of user code ended, since the start.
  using UserStacks = std::array<uint64_t, PK_STACK_ENDS>;
  [[nodiscard]] const UserStacks& user_stacks() const { return user_stacks_; }
  // Stacks that come with no tables are had there.
  void fetch_stacks_by(Stacks::Fetch fetch) { stacks_.fetch_by(std::move(fetch)); }
  void add(const Tables& tables);
  // Charges what is on objects to those they are for, as far as that is known by now. Returns how
  // many are still without.
  size_t resolve_owners(const Parties::Of& parties_of);
  // Nobody will be found for those that still are.
  void give_up_objects();
  // Keeps to the limits; after what was added has been charged as far as can be.
  void make_room();
  // What make_room() took the stack from, and what was for objects that it forgot.
  struct Lost {
    uint64_t samples = 0;
    uint64_t uses = 0;  // waits, too
    void add(const pk_key& key, const pk_count& count) {
      (is_of_cpu(key) ? samples : uses) += count.samples;
    }
  };
  [[nodiscard]] const Lost& without_stack() const { return without_stack_; }
  [[nodiscard]] const Lost& forgotten() const { return forgotten_; }
  [[nodiscard]] uint64_t wakeups_forgotten() const { return wakeups_.forgotten(); }
  void add_leftovers(const Leftovers& left);        // but for the votes
  void add_special(uint64_t special, uint64_t ns);  // time that no sample stands for
  // For how long the CPUs that are idle have been, up to now. When they wake, the tables will have
  // the whole of it: what was told before is not counted again.
  void add_idle_so_far(uint64_t ns);

  [[nodiscard]] size_t rows() const { return rows_.size(); }
  [[nodiscard]] size_t frames() const { return stacks_.frames(); }

  // Moves everything into the profile, and forgets it. `selected` decides by label; the rest is
  // OTHER, without stacks, or with the kernel's part of them.
  using Selected = RowNames::Selected;
  void finish(Profile& profile, const Selected& selected, bool stacks_of_others = false);

 private:
  using Counts = std::unordered_map<Row, pk_count, RowHash>;

  void count(const Row& row, const pk_count& count);
  static void tell(Profile& profile, const Row& row, const SampleKey& key, const pk_count& count);
  void charge(const Row& row, uint64_t samples, std::span<const Parties::Share> parties,
              std::span<const uint64_t> ns, bool voted);
  void charge_all(const Rows& rows, std::span<const Parties::Share> parties);
  void charge_many(std::span<const std::pair<Row, pk_count>> rows,
                   std::span<const Parties::Share> parties);
  // Samples stay as many as were taken.
  pk_count scaled(const pk_key& key, uint64_t ns, uint64_t samples) {
    return {scale_(ns), is_of_cpu(key) ? samples : scale_times_(samples)};
  }
  // Who is at the other end of packets gets the number that he is to have.
  void meet_peer(pk_key& key);
  Row row_of(const pk_charge& charge);
  void add_charge(uint64_t object, const pk_charge& charge);
  void add_nobody(const pk_charge& charge);
  void add_exact(const pk_exact& exact);
  void forget_objects();
  void forget_when_objects_worked();
  bool take_stacks();
  // Stacks of the kernel's code outlive so many readings of the tables, by themselves: accounts are
  // settled within seconds; a disk may take longer, and a journal's transaction.
  void keep_stacks(uint32_t rounds = 10);
  void fold_processes();
  void shorten_timeline();
  [[nodiscard]] bool is_above(double part) const;
  void add_row(const Row& row, const pk_count& count);
  [[nodiscard]] Row with_processes_of_now(const Row& row) const;

  Processes& processes_;
  const RecorderLimits limits_;
  Stacks stacks_;
  Clients clients_;
  ClientCalls calls_;
  Wakeups wakeups_;
  Peers peers_;
  LockNames lock_names_;
  Counts rows_;
  Counts objects_;  // those for an object whose owner is not known yet
  RowNames names_;
  Timeline timeline_;
  DeviceNames devices_;
  RecordedWaits waits_;
  Scale scale_;
  Scale scale_times_;           // how often something was waited for or used
  size_t with_stack_ = 0;       // of rows_
  uint64_t idle_ahead_ns_ = 0;  // in profiles already, and still to come in tables
  UserStacks user_stacks_ = {};
  Lost without_stack_;
  Lost forgotten_;
};

}  // namespace pkprof
