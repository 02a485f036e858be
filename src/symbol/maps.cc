// SPDX-License-Identifier: Apache-2.0
// Only executable mappings are kept: samples are of code, and a process may have thousands of
// mappings that are not.
#include "symbol/maps.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "symbol/parse.h"

namespace pkprof {
namespace {

// What was mapped before, in a process that loads and unloads its plug-ins.
constexpr size_t most_replaced = 256;

// The kernel writes a newline in a name as "\012" and leaves every other byte as it is.
std::string unescape(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i, 4) == "\\012") {
      out += '\n';
      i += 3;
    } else {
      out += name[i];
    }
  }
  return out;
}

// "7f00-8f00 r-xp 00001000 fe:01 1234    /usr/lib/libc.so.6"
bool parse_line(std::string_view line, UserMap& map, bool& executable) {
  uint64_t major = 0;
  uint64_t minor = 0;
  if (!take_number(line, 16, map.start) || !take_char(line, '-') ||
      !take_number(line, 16, map.end) || !take_char(line, ' ') || line.size() < 5) {
    return false;
  }
  executable = line[2] == 'x';
  line.remove_prefix(4);
  if (!take_char(line, ' ') || !take_number(line, 16, map.offset) || !take_char(line, ' ') ||
      !take_number(line, 16, major) || !take_char(line, ':') || !take_number(line, 16, minor) ||
      !take_char(line, ' ') || !take_number(line, 10, map.inode)) {
    return false;
  }
  if (map.end <= map.start || major > UINT32_MAX || minor > UINT32_MAX) return false;
  map.device_major = static_cast<uint32_t>(major);
  map.device_minor = static_cast<uint32_t>(minor);
  skip_spaces(line);
  map.file = unescape(line);
  return true;
}

// Whether an address that both have means the same place of the same file.
bool is_same_code(const UserMap& a, const UserMap& b) {
  if (is_anonymous(a.file) && is_anonymous(b.file)) return true;
  if (a.file_number && b.file_number && a.file_number != b.file_number) return false;
  return std::tie(a.file, a.inode, a.device_major, a.device_minor) ==
             std::tie(b.file, b.inode, b.device_major, b.device_minor) &&
         a.start - a.offset == b.start - b.offset;
}

}  // namespace

bool is_anonymous(const std::string& file) {
  return file.empty() || file.starts_with("//anon") || file.starts_with("[") ||
         file.starts_with("/memfd:") || file.starts_with("/dev/zero") ||
         file.starts_with("/SYSV") || file.starts_with("/anon_hugepage") ||
         file.starts_with("/dev/shm/") || file.starts_with("anon_inode:");
}

UserMap MapPiece::as_map() const {
  UserMap map = origin->map;
  map.offset = file_offset(start);
  map.start = start;
  map.end = end;
  return map;
}

bool MapTable::add(const UserMap& map) {
  if (map.end <= map.start) return true;
  auto origin = std::make_shared<MapOrigin>(MapOrigin{map, false, nullptr});
  MapPiece piece{map.start, map.end, std::move(origin)};
  // Those that the new one touches: from the first that ends after its start.
  auto first = std::partition_point(pieces_.begin(), pieces_.end(),
                                    [&](const MapPiece& p) { return p.end <= map.start; });
  auto last = std::partition_point(first, pieces_.end(),
                                   [&](const MapPiece& p) { return p.start < map.end; });
  // Who does not know the number tells nothing new.
  if (first != last && std::next(first) == last && !map.file_number && first->start == map.start &&
      first->end == map.end && is_same_code(first->origin->map, map))
    return true;
  // What is there again is no longer replaced.
  std::erase_if(replaced_, [&](const MapPiece& p) {
    return p.start >= map.start && p.end <= map.end && is_same_code(p.origin->map, map);
  });
  bool kept = true;
  for (auto it = first; it != last; ++it)
    if (!is_same_code(it->origin->map, map)) kept &= keep_replaced(*it);
  std::vector<MapPiece> replacement;
  if (first != last && first->start < map.start) {
    replacement.push_back({first->start, map.start, first->origin});
  }
  replacement.push_back(std::move(piece));
  if (first != last && std::prev(last)->end > map.end) {
    replacement.push_back({map.end, std::prev(last)->end, std::prev(last)->origin});
  }
  first = pieces_.erase(first, last);
  pieces_.insert(first, std::make_move_iterator(replacement.begin()),
                 std::make_move_iterator(replacement.end()));
  return kept;
}

bool MapTable::keep_replaced(const MapPiece& piece) {
  if (!piece.origin->map.file_number) return true;
  const bool full = replaced_.size() >= most_replaced;
  if (full) replaced_.erase(replaced_.begin());
  replaced_.push_back(piece);
  return !full;
}

const MapPiece* MapTable::find(uint64_t address, uint64_t file_number) const {
  const auto it = std::partition_point(pieces_.begin(), pieces_.end(),
                                       [&](const MapPiece& p) { return p.end <= address; });
  const MapPiece* now = it != pieces_.end() && it->start <= address ? &*it : nullptr;
  const uint64_t number = now ? now->origin->map.file_number : 0;
  if (!file_number || number == file_number) return now;
  const auto before = std::find_if(replaced_.rbegin(), replaced_.rend(), [&](const MapPiece& p) {
    return p.start <= address && address < p.end && p.origin->map.file_number == file_number;
  });
  if (before != replaced_.rend()) return &*before;
  return number ? nullptr : now;
}

ParsedMaps parse_maps(std::string_view text) {
  ParsedMaps parsed;
  for (std::string_view line; take_line(text, line);) {
    UserMap map;
    bool executable = false;
    if (!parse_line(line, map, executable)) {
      if (!line.empty()) ++parsed.malformed;
    } else if (executable) {
      parsed.executable.push_back(std::move(map));
    }
  }
  return parsed;
}

}  // namespace pkprof
