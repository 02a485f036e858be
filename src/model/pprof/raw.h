// SPDX-License-Identifier: Apache-2.0
// A profile.proto message as it is in the bytes: tables of numbers that are not yet known to lead
// anywhere, strings as views, samples as unparsed messages. For src/model and src/import.
//
// A bad file is an exception here (protozero throws its own anyway): Malformed, or
// protozero::exception. with_plain_bytes() turns all of them into an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/pprof/format.h"
#include "model/profile.h"

namespace pkprof::pprof {

struct Malformed {
  std::string what;
};

inline void require(bool condition, const char* what) {
  if (!condition) throw Malformed{what};
}

struct RawValueType {
  uint64_t type = 0, unit = 0;
};
struct RawMapping {
  uint64_t id = 0, start = 0, limit = 0, offset = 0, file = 0, build_id = 0;
};
struct RawLine {
  uint64_t function = 0, line = 0;
};
// One place in code, with so many of RawFile::lines, the innermost of what was inlined there first.
struct RawLocation {
  uint64_t id = 0, mapping = 0, address = 0;
  size_t first_line = 0, line_count = 0;
};
struct RawFunction {
  uint64_t id = 0, name = 0, file = 0;
};
struct RawLabel {
  uint64_t key = 0, str = 0, num = 0;
};

struct RawFile {
  std::vector<std::string_view> strings;
  std::vector<RawValueType> value_types;
  std::vector<RawMapping> mappings;
  std::vector<RawLocation> locations;
  std::vector<RawLine> lines;
  std::vector<RawFunction> functions;
  std::vector<uint64_t> comments;
  std::vector<protozero::data_view> samples;
  uint64_t time = 0;
  uint64_t duration = 0;
  RawValueType period_type;
  uint64_t period = 0;

  [[nodiscard]] std::string_view text(uint64_t index) const {
    require(index < strings.size(), "a string index is out of range");
    return strings[index];
  }
};

// Calls `decode` with the message, which may have been gzip'd in a file within the limits, and has
// what is thrown as an error.
using Decode = std::function<Result<Profile>(std::string_view message)>;
[[nodiscard]] Result<Profile> with_plain_bytes(std::span<const std::byte> bytes,
                                               const Decode& decode);

// The views in the result are valid as long as `bytes`.
[[nodiscard]] RawFile read_raw(std::string_view bytes);

// One sample, with as many frames as it has up to `deepest`. The lists are cleared first, so that
// their memory can be used again.
void read_raw_sample(protozero::data_view sample, std::vector<uint64_t>& locations,
                     std::vector<uint64_t>& values, std::vector<RawLabel>& labels,
                     size_t deepest = max_depth);

}  // namespace pkprof::pprof
