// SPDX-License-Identifier: Apache-2.0
// The mappings of one process: reading /proc/PID/maps, and a table in which a new mapping replaces
// what it overlaps, as mmap with MAP_FIXED does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/symbolizer.h"

namespace pkprof {

class ElfFile;

// A mapping as it was made, and the file behind it once it has been looked for. Shared by the
// pieces that later mappings left of it, and by children.
struct MapOrigin {
  UserMap map;
  bool resolved = false;
  std::shared_ptr<ElfFile> elf;  // nullptr when there is none
};

struct MapPiece {
  uint64_t start = 0;
  uint64_t end = 0;
  std::shared_ptr<MapOrigin> origin;

  [[nodiscard]] UserMap as_map() const;  // the origin, cut to the piece
  [[nodiscard]] uint64_t file_offset(uint64_t address) const {
    return address - origin->map.start + origin->map.offset;
  }
};

class MapTable {
 public:
  // Ignored when empty. False: something that was mapped before is forgotten for it.
  bool add(const UserMap& map);
  // Of a file whose number is known, what was mapped there before counts, too.
  [[nodiscard]] const MapPiece* find(uint64_t address, uint64_t file_number = 0) const;
  [[nodiscard]] const std::vector<MapPiece>& pieces() const { return pieces_; }

 private:
  bool keep_replaced(const MapPiece& piece);

  std::vector<MapPiece> pieces_;    // by address, disjoint
  std::vector<MapPiece> replaced_;  // of files with numbers, the last one last
};

// Whether the name is of memory that no file is behind, where a JIT compiler's code may be.
[[nodiscard]] bool is_anonymous(const std::string& file);

struct ParsedMaps {
  std::vector<UserMap> executable;
  size_t malformed = 0;
};

// The executable mappings in a text in the format of /proc/PID/maps. Newlines in names come as
// "\012". Lines that are not of the format are skipped and counted.
[[nodiscard]] ParsedMaps parse_maps(std::string_view text);

}  // namespace pkprof
