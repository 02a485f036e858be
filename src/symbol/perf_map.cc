// SPDX-License-Identifier: Apache-2.0
// The file is written by the profiled process: anything may be in it, it may grow while it is read,
// and it may be cut in the middle of a line that is still being written.
#include "symbol/perf_map.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "symbol/parse.h"

namespace pkprof {
namespace {

constexpr size_t block_size = size_t{256} << 10;
constexpr size_t max_line = PerfMap::max_name + 64;

void take_hex_prefix(std::string_view& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
}

}  // namespace

class PerfMap::Builder {
 public:
  void add_line(std::string_view line) {
    uint64_t start = 0;
    uint64_t size = 0;
    take_hex_prefix(line);
    const bool has_start = take_number(line, 16, start) && take_char(line, ' ');
    take_hex_prefix(line);
    if (!has_start || !take_number(line, 16, size) || !take_char(line, ' ') || line.empty() ||
        size == 0 || size > UINT64_MAX - start) {
      ++map_.malformed_;
      return;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = line.substr(0, std::min(line.find('\0'), max_name));
    const auto id = static_cast<uint32_t>(map_.names_.size());
    map_.names_.append(line);
    map_.names_ += '\0';
    ranges_.push_back({start, start + size, ranges_.size(), id});
  }

  // What build() will need at most.
  [[nodiscard]] uint64_t memory() const {
    return map_.names_.size() + ranges_.size() * (sizeof(PriorityRange) + 2 * sizeof(FlatRange));
  }

  PerfMap build() {
    map_.pieces_ = flatten(ranges_);
    map_.pieces_.shrink_to_fit();
    map_.names_.shrink_to_fit();
    return std::move(map_);
  }

 private:
  PerfMap map_;
  std::vector<PriorityRange> ranges_;
};

PerfMap PerfMap::parse(std::string_view text) {
  Builder builder;
  for (std::string_view line; take_line(text, line);) builder.add_line(line);
  return builder.build();
}

std::optional<PerfMap> PerfMap::read(int fd, uint64_t size, uint64_t limit) {
  Builder builder;
  std::string block(block_size, '\0');
  std::string begun;  // a line, as far as it may matter
  while (size > 0) {
    const ssize_t got = ::read(fd, block.data(), std::min<uint64_t>(size, block.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size -= static_cast<uint64_t>(got);
    std::string_view text(block.data(), static_cast<size_t>(got));
    for (size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      begun.append(text.substr(0, std::min(end, max_line - begun.size())));
      builder.add_line(begun);
      begun.clear();
    }
    begun.append(text.substr(0, max_line - begun.size()));
    if (builder.memory() > limit) return std::nullopt;
  }
  if (!begun.empty()) builder.add_line(begun);
  return builder.build();
}

std::string_view PerfMap::find(uint64_t address) const {
  const FlatRange* piece = find_range(pieces_, address);
  if (piece == nullptr) return {};
  return names_.data() + piece->id;
}

}  // namespace pkprof
