// SPDX-License-Identifier: Apache-2.0
// Opening files that somebody else chose. The name may lead to a FIFO, a device, a link out of a
// container, a file of the kernel's whose reading consumes it (/proc/kmsg) or a file of any size;
// none of these may block, act or eat memory.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

// What tells a regular file from every other, and from itself before it was changed: nobody can set
// the time of its last change.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;
  int64_t size = 0;
  auto operator<=>(const FileStamp&) const = default;
};
[[nodiscard]] Result<FileStamp> stamp_of(int fd);

// A directory below which paths are resolved as if it were "/": links cannot lead out of it.
// Holds a descriptor, so that a container's files can be found after its processes are gone.
class RootDir {
 public:
  // Which root it is: the same for two only if all paths below them lead to the same. A mount keeps
  // its number while a descriptor is below it, so a RootDir's is no other's as long as it is there.
  struct Identity {
    uint64_t mount = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    auto operator<=>(const Identity&) const = default;
  };

  static Result<std::shared_ptr<RootDir>> open(const std::string& path);

  // Whether `path` (absolute, as seen from this root) is a regular file, opened for reading. The
  // file is examined before it is opened, since opening a device may already do something.
  [[nodiscard]] Result<Fd> open_regular(const std::string& path) const;
  // The same for a file in a directory that anybody may write to. Its name must be its own, no link
  // that another user may have made, and its owner one of these.
  [[nodiscard]] Result<Fd> open_owned(const std::string& path, std::span<const uid_t> owners) const;
  // What is there, if it is a regular file and the kernel has it at hand: this never waits.
  [[nodiscard]] std::optional<FileStamp> look_at(const std::string& path) const;
  [[nodiscard]] const Identity& identity() const { return identity_; }

 private:
  Fd fd_;
  Identity identity_;
};

// The same for a path that is to be followed through /proc's magic links.
[[nodiscard]] Result<Fd> open_regular_magic(const std::string& path);

// Up to `limit` bytes of a file from its beginning; `truncated` tells whether there were more.
// Works for /proc, whose files have no size.
[[nodiscard]] Result<std::string> read_up_to(int fd, size_t limit, bool* truncated = nullptr);
[[nodiscard]] Result<std::string> read_proc_file(const std::string& path, size_t limit);

[[nodiscard]] std::string to_hex(std::string_view bytes);

}  // namespace pkprof
