// SPDX-License-Identifier: Apache-2.0
// Stacks of a recording, each kept once: as frames in tables of their own, until a profile wants
// them.
//
// A recording goes on for hours, and there is no end to what may be new in it: addresses of a
// library are other ones in each process that is started, and a stack's number with them. So code
// of a file is known by where it was met first, whatever the process; what the kernel side calls a
// stack is remembered for a while; and keep() forgets what nobody needs any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernel/counted.h"
#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class Stacks {
 public:
  using Frames = std::span<const FrameId>;  // leaf first; until the next call that is not const

  Stacks(const KernelSymbols* kernel, UserSymbols& user);

  // A later state of the kernel's symbols, for what was not there before: our own programs. It is
  // asked for where an address has no name yet; nullptr: there is none.
  using LaterSymbols = std::function<const KernelSymbols*()>;
  void add_kernel_symbols(LaterSymbols later) { later_kernel_ = std::move(later); }
  // Where stacks are to be had that were not handed over; empty: it is not known there.
  using Fetch = std::function<CountedStack(uint64_t number)>;
  void fetch_by(Fetch fetch) { fetch_ = std::move(fetch); }
  // A reading of the tables begins, with these stacks. Those of user code can be asked for until
  // the one after the next.
  void hand_over(std::span<const RawStack> stacks);
  // A row names this stack of the kernel's code: it is there until keep().
  void meet(uint64_t number);

  // A number for a stack of user code of that image: the same for the same code in whatever
  // process. 0 when it is not known.
  uint64_t user_number(uint64_t raw, uint64_t image) { return resolve(raw, image).number; }
  // The same, and how it ended.
  struct User {
    uint64_t number = 0;
    pk_stack_end end = PK_STACK_ASIDE;
  };
  User resolve(uint64_t raw, uint64_t image);
  // The number of a stack that is no more than the outermost frames of this one of the kernel's.
  uint64_t outermost(uint64_t number, size_t frames);
  FrameId kernel_frame(uint64_t address);
  // What the first frame of a stack of the kernel's code is; 0 when the stack is not known.
  [[nodiscard]] uint64_t first_address(uint64_t number) const;
  // The name of an image's data, see UserSymbols.
  [[nodiscard]] std::string data_name(uint64_t image, uint64_t address) {
    return user_symbols_.data_name(image, address);
  }

  [[nodiscard]] Frames kernel(uint64_t number) const { return frames_of(kernel_, number); }
  [[nodiscard]] Frames user(uint64_t number) const { return frames_of(user_, number); }
  [[nodiscard]] std::string_view function(FrameId frame) const;  // "" when not known

  // What is in the tables: distinct frames, and frames of all stacks.
  [[nodiscard]] size_t frames() const { return tables_.frames().size(); }
  [[nodiscard]] size_t length() const { return length_; }
  // Forgets all stacks but these, and those of the kernel's code that were met in the last so many
  // readings: an account may yet name them.
  using Numbers = std::unordered_set<uint64_t>;
  void keep(const Numbers& kernel, const Numbers& user, uint32_t rounds = 10);

  // Carries frames over into a profile.
  class Mover {
   public:
    Mover(const Stacks& from, Profile& to) : from_(from), to_(to) {}
    FrameId operator()(FrameId frame);

   private:
    const Stacks& from_;
    Profile& to_;
    std::unordered_map<FrameId, FrameId> moved_;
  };

 private:
  struct Kept {
    StackId stack = 0;
    uint32_t round = 0;  // reading of the tables in which it was met last
  };
  using ByNumber = std::unordered_map<uint64_t, Kept>;
  struct UserKey {
    uint64_t raw;
    uint64_t image;
    bool operator==(const UserKey&) const = default;
  };
  struct UserKeyHash {
    size_t operator()(const UserKey& k) const { return k.raw ^ (k.image * 0x9e3779b97f4a7c15ULL); }
  };
  using Resolved = std::unordered_map<UserKey, User, UserKeyHash>;
  using Raw = std::unordered_map<uint64_t, std::vector<uint64_t>>;
  // A part of a file in memory, wherever it was mapped: path, build-id, offset, length, and the
  // linker's address, since two files may claim the same path and build-id.
  using Part = std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>;

  [[nodiscard]] Frames frames_of(const ByNumber& stacks, uint64_t number) const;
  [[nodiscard]] const KernelSymbol* symbol_of(const Frame& frame) const;
  StackId intern(Frames frames);
  StackId intern_kernel(const std::vector<uint64_t>& stack);
  void add_user_frames(uint64_t image, uint64_t place, std::vector<FrameId>& to);
  uint64_t number_of(const std::vector<uint64_t>& raw, uint64_t image);

  const KernelSymbols* kernel_symbols_;
  LaterSymbols later_kernel_;
  UserSymbols& user_symbols_;
  Fetch fetch_;
  Profile tables_;  // frames, mappings, stacks; of the kernel's frames the address only
  size_t length_ = 0;
  uint32_t round_ = 0;
  ByNumber kernel_;
  ByNumber user_;
  uint64_t next_number_ = 1;
  std::unordered_map<StackId, uint64_t> number_of_;  // of user_
  std::map<Part, MappingId> first_met_;
  // Of user code: as handed over and as resolved, of late and before that.
  Raw raw_, raw_before_;
  Resolved resolved_, resolved_before_;
};

}  // namespace pkprof
