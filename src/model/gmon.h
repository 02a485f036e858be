// SPDX-License-Identifier: Apache-2.0
// GNU's gmon.out, version 1: what a program compiled with -pg leaves, and what gprof reads.
//
// The file is "gmon", a version and twelve unused bytes; then records, each behind a byte that
// tells its kind: histograms (0), calls (1), counts of basic blocks (2). Numbers are in the byte
// order of the machine, addresses as wide as the program's: neither is written down. What an
// address is called only the program's ELF file tells. See gmon_out.h of GNU binutils.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof {

// Counters of equal ranges of addresses. gprof adds up those of one range, and wants all of them to
// have ranges of one size.
struct GmonHistogram {
  uint64_t low = 0;
  uint64_t high = 0;                  // past the last address
  uint32_t rate = 0;                  // counts in one unit of the dimension
  std::string dimension = "seconds";  // 15 bytes at most
  char abbreviation = 's';
  std::vector<uint16_t> counts;
  bool operator==(const GmonHistogram&) const = default;
};

struct GmonArc {
  uint64_t from = 0;  // somewhere in the caller
  uint64_t to = 0;    // somewhere in the callee
  uint32_t count = 0;
  bool operator==(const GmonArc&) const = default;
};

struct Gmon {
  std::vector<GmonHistogram> histograms;
  std::vector<GmonArc> arcs;
  uint64_t blocks = 0;  // counts of basic blocks that were passed over
  bool operator==(const Gmon&) const = default;
};

// For programs with addresses of 64 bits. Blocks are not written.
[[nodiscard]] std::string encode_gmon(const Gmon& gmon);

// Also of programs with addresses of 32 bits: as the records fill the file in only one of the two
// ways. Memory is bounded by a small multiple of the file.
[[nodiscard]] Result<Gmon> decode_gmon(std::span<const std::byte> bytes);

// The sentence of a failure names `path`.
[[nodiscard]] Result<Gmon> read_gmon(const std::string& path);

}  // namespace pkprof
