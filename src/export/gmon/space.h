// SPDX-License-Identifier: Apache-2.0
// The addresses that functions get for gprof, and what its files say in terms of them.
//
// Parts lie one behind the other in one address space, of each first the user's functions, then the
// kernel's, with its roots. So every file of one export can be read with the symbols of the
// whole, and any of them can be added up by gprof, which wants histograms to be of the same range
// or of ranges apart.
//
// Time is in ticks of a microsecond, or of ten, a hundred, ... if they are too many otherwise; a
// sample's own time, whatever clock it was taken by. A counter has 16 bits only, and `gprof -s`
// writes sums into them, so a function is as long as it needs counters of a few thousand ticks
// each. Nothing is rounded but to the tick.
//
// Calls are those that were counted, of a function that had all of them counted. Otherwise the
// count of an arc is its ticks: the time that the callee and what it called took under this caller.
// gprof divides a function's time among its callers by these counts, so its graph then shows what
// the stacks showed, where numbers of samples would only come near it, and ones would divide evenly
// what was not.
#pragma once

#include <cstdint>
#include <vector>

#include "export/gmon/parts.h"
#include "model/gmon.h"
#include "symbol/symbol_file.h"

namespace pkprof {

enum class GmonSide : uint8_t { user, kernel, both };

class GmonSpace {
 public:
  // `parts` must outlive this.
  explicit GmonSpace(const std::vector<GmonPart>& parts);

  [[nodiscard]] uint32_t ticks_per_second() const { return 1'000'000'000 / tick_ns_; }

  // Numbers of parts.
  using Parts = std::vector<uint32_t>;
  struct Place {
    uint32_t part = 0;
    uint32_t function = 0;
  };
  // All functions of these parts, by address.
  [[nodiscard]] std::vector<Place> order(const Parts& parts) const;
  // In that order, and one more behind them.
  [[nodiscard]] SymbolFile symbols(const Parts& parts) const;
  // Of one side alone, what the other called is called by the root.
  [[nodiscard]] Gmon records(const Parts& parts, GmonSide side) const;

 private:
  struct Range {
    uint64_t low = 0;
    uint64_t high = 0;
  };
  struct Placed {
    std::vector<Range> functions;
    Range user;
    Range kernel;
  };

  [[nodiscard]] uint64_t ticks(uint64_t ns) const { return (ns + tick_ns_ / 2) / tick_ns_; }
  void place(const GmonPart& part);
  void place(const GmonPart& part, Placed& placed, bool user);
  void add_histogram(Gmon& to, uint32_t part, bool user) const;
  void add_arcs(Gmon& to, uint32_t part, GmonSide side) const;
  void add_arc(Gmon& to, uint64_t from, uint64_t into, uint64_t count) const;

  const std::vector<GmonPart>& parts_;
  uint64_t tick_ns_ = 1000;
  uint64_t end_ = 0;
  std::vector<Placed> placed_;
};

}  // namespace pkprof
