// SPDX-License-Identifier: Apache-2.0
// Where in a program its time goes, by address: the bars of the Minix `profile` command (van Loo,
// van Zijst, 2004).
//
// Time counts at the instruction pointer: in the kernel at the instruction that called it, or
// apart. Addresses are the file's own, as nm prints them, wherever it was loaded. What is not in
// the bars is in `elsewhere`, so that the two sum to all there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct HistogramOptions {
  std::vector<uint32_t> pids;  // empty: all
  std::string library;         // the file, by path or name; "": the program
  std::string range;           // "START-END", both included, or a function; "": all code
  size_t rows = 20;            // 0: one for each address that has samples
  bool kernel = false;         // time in the kernel apart
};

struct HistogramValue {
  uint64_t samples = 0;
  uint64_t ns = 0;
  HistogramValue& operator+=(const HistogramValue& o);
};

// A function that begins or lies in a row.
struct HistogramSymbol {
  std::string name;     // not cleaned
  uint64_t offset = 0;  // of the row's first address; 0 where the function begins in the row
  HistogramValue value;
};

struct HistogramRow {
  uint64_t first = 0;
  uint64_t last = 0;  // included
  HistogramValue value;
  std::vector<HistogramSymbol> symbols;  // those with the most time first, then by address
};

// Time of the same processes that is in no bar.
struct HistogramElsewhere {
  enum class Kind : uint8_t {
    outside = 0,   // in the file, outside of the range
    file,          // in another one
    memory,        // in memory of no file, or none that is known
    no_address,    // in the kernel, and the program's address is not known
    system_calls,  // in the kernel, where that is apart
    kernel,        // the rest of it: faults, and interrupts that came
    asynchronous,  // not on the CPU: the kernel worked for them elsewhere
  };
  Kind kind = Kind::outside;
  std::string name;  // of the file or memory; not cleaned
  HistogramValue value;
};
[[nodiscard]] std::string_view to_string(HistogramElsewhere::Kind kind);

struct Histogram {
  std::string file;
  std::string build_id;
  HistogramValue all;
  HistogramValue here;  // in the rows
  std::vector<HistogramRow> rows;
  std::vector<HistogramElsewhere> elsewhere;  // by time
};

// The file that the histogram is to be of. Fails when there is none of that name.
[[nodiscard]] Result<std::string> histogram_file(const Profile& profile,
                                                 const HistogramOptions& options);

// With `code`, which is of that file, addresses are those of all its code and functions are whole.
// Without, what is known of both is what the profile's mappings and samples tell.
[[nodiscard]] Result<Histogram> histogram_of(const Profile& profile,
                                             const HistogramOptions& options,
                                             const FileCode* code = nullptr);

}  // namespace pkprof
