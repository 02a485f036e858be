// SPDX-License-Identifier: Apache-2.0
// The file is written by the profiled process: anything may be in it, and it may be cut in the
// middle of a line that is still being written.
#include "symbol/perf_map.h"

#include "symbol/parse.h"

namespace pkprof {
namespace {

void take_hex_prefix(std::string_view& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
}

}  // namespace

PerfMap PerfMap::parse(std::string_view text) {
  PerfMap map;
  std::vector<PriorityRange> ranges;
  if (text.size() > max_file) text = text.substr(0, max_file);
  uint64_t order = 0;
  for (std::string_view line; take_line(text, line);) {
    uint64_t start = 0;
    uint64_t size = 0;
    take_hex_prefix(line);
    const bool has_start = take_number(line, 16, start) && take_char(line, ' ');
    take_hex_prefix(line);
    if (!has_start || !take_number(line, 16, size) || !take_char(line, ' ') || line.empty() ||
        size == 0 || size > UINT64_MAX - start) {
      ++map.malformed_;
      continue;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = line.substr(0, std::min(line.find('\0'), max_name));
    const auto id = static_cast<uint32_t>(map.names_.size());
    map.names_.append(line);
    map.names_ += '\0';
    ranges.push_back({start, start + size, ++order, id});
  }
  map.pieces_ = flatten(ranges);
  map.pieces_.shrink_to_fit();
  map.names_.shrink_to_fit();
  return map;
}

std::string_view PerfMap::find(uint64_t address) const {
  const FlatRange* piece = find_range(pieces_, address);
  if (piece == nullptr) return {};
  return names_.data() + piece->id;
}

}  // namespace pkprof
