// SPDX-License-Identifier: Apache-2.0
// See file.h. O_TMPFILE gives the nameless file; where the file system has none (NFS, FUSE,
// some overlays), a file with a random name stands in for it and is removed on failure.
#include "model/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <random>

#include "base/fd.h"

namespace pkprof {

namespace {

constexpr mode_t new_file_mode = 0600;
constexpr int name_attempts = 100;

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// The number of the descriptor that `path` is another name of, -1 when it is a path of a file.
int descriptor_of(std::string_view path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    const std::string_view digits = path.substr(prefix.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    if (error == std::errc() && end == digits.data() + digits.size()) return fd;
  }
  return -1;
}

// A file as its name in a directory that is held open: whatever happens to the path meanwhile, the
// name is looked up nowhere else.
struct Place {
  Fd directory;
  std::string name;
  Fd file;                // as O_PATH opens it; not valid where there is none
  struct stat about{};    // of the file
  bool is_magic = false;  // reached by a link of /proc's: what is open there, whatever its name
};

// Relative paths begin at `from`.
Result<Place> place_of(int from, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Place place;
  place.directory = Fd(::openat(from, directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.directory.valid()) return fail(std::strerror(errno));
  place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (place.name.empty()) place.name = ".";
  place.file =
      Fd(::openat(place.directory.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!place.file.valid() && errno != ENOENT) return fail(std::strerror(errno));
  if (place.file.valid() && ::fstat(place.file.get(), &place.about) != 0)
    return fail(std::strerror(errno));
  return place;
}

// /proc/self/fd/1, to which /dev/stdout leads: the kernel alone can follow it.
Result<Place> follow_magic(Place place) {
  Fd file(::openat(place.directory.get(), place.name.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid() || ::fstat(file.get(), &place.about) != 0) return fail(std::strerror(errno));
  place.file = std::move(file);
  place.is_magic = true;
  return place;
}

// Where a chain of symbolic links leads, also when nothing is there yet. A link of another user in
// a shared folder is refused, as the kernel does where fs.protected_symlinks is on.
Result<Place> follow(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel has it
  Result<Place> place = place_of(AT_FDCWD, path);
  for (int i = 0; i < most_links; ++i) {
    if (!place || !S_ISLNK(place->about.st_mode)) return place;
    struct statfs of{};
    if (::fstatfs(place->file.get(), &of) == 0 && of.f_type == PROC_SUPER_MAGIC)
      return follow_magic(std::move(*place));
    if (is_planted(place->directory.get(), place->about))
      return fail("it is another user's link in a folder that others write to");
    std::string target(PATH_MAX, '\0');
    const ssize_t n = ::readlinkat(place->file.get(), "", target.data(), target.size());
    if (n < 0) return fail(std::strerror(errno));
    target.resize(static_cast<size_t>(n));
    place = place_of(place->directory.get(), target);
  }
  return fail(std::strerror(ELOOP));
}

std::string own_link(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

std::string random_name(const std::string& name) {
  static std::random_device random;
  return name + "." + std::to_string(random()) + ".tmp";
}

// A file without its final name. Unless keep() succeeds, nothing of it stays.
class PendingFile {
 public:
  explicit PendingFile(Place place) : place_(std::move(place)) {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (!name_.empty()) ::unlinkat(directory(), name_.c_str(), 0);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }

  Result<> open() {
    fd_ = Fd(::openat(directory(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, new_file_mode));
    for (int i = 0; i < name_attempts && !fd_.valid(); ++i) {
      const std::string name = random_name(place_.name);
      fd_ = Fd(::openat(directory(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
                        new_file_mode));
      if (fd_.valid()) name_ = name;
      if (!fd_.valid() && errno != EEXIST) break;
    }
    if (!fd_.valid()) return fail(std::strerror(errno));
    return {};
  }

  Result<> keep() {
    if (::fsync(fd_.get()) != 0) return fail(std::strerror(errno));
    if (name_.empty()) {
      const Result<> named = give_name();
      if (!named) return named;
    }
    if (name_ != place_.name &&
        ::renameat(directory(), name_.c_str(), directory(), place_.name.c_str()) != 0)
      return fail(std::strerror(errno));
    name_.clear();
    // So that the name survives a power cut too; not every file system can, and it is not vital.
    const Fd readable(::openat(directory(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (readable.valid()) ::fsync(readable.get());
    return {};
  }

 private:
  [[nodiscard]] int directory() const { return place_.directory.get(); }

  // linkat does not replace, so an existing file needs a name beside it and a rename.
  Result<> give_name() {
    std::string name = place_.name;
    for (int i = 0; i < name_attempts; ++i) {
      if (::linkat(AT_FDCWD, own_link(fd_.get()).c_str(), directory(), name.c_str(),
                   AT_SYMLINK_FOLLOW) == 0) {
        name_ = name;
        return {};
      }
      if (errno != EEXIST) break;
      name = random_name(place_.name);
    }
    return fail(std::strerror(errno));
  }

  Place place_;
  Fd fd_;
  std::string name_;  // what it is called now, empty while it is nameless
};

Result<> replace_file(Place place, std::string_view bytes) {
  PendingFile file(std::move(place));
  Result<> done = file.open();
  if (done) done = write_all(file.fd(), bytes);
  if (done) done = file.keep();
  return done;
}

// What another user put there, or reads, is not for us to write to: neither a file in a shared
// folder, which the kernel does not open for writing either, nor a FIFO or a device anywhere.
Result<> check_ours(const Place& place) {
  if (!place.file.valid()) return {};
  if (S_ISDIR(place.about.st_mode)) return fail(std::strerror(EISDIR));
  if (S_ISREG(place.about.st_mode)) {
    if (!is_planted(place.directory.get(), place.about)) return {};
    return fail("it is another user's file in a folder that others write to");
  }
  if (place.about.st_uid == 0 || place.about.st_uid == ::geteuid()) return {};
  const bool is_fifo = S_ISFIFO(place.about.st_mode);
  return fail(is_fifo ? "it is another user's FIFO" : "it is another user's device");
}

Result<Fd> open_known(const Place& place) {
  Fd fd(::open(own_link(place.file.get()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return fail(std::strerror(errno));
  return fd;
}

Result<> write_to(const std::string& path, std::string_view bytes) {
  if (const int fd = descriptor_of(path); fd >= 0) return write_all(fd, bytes);
  Result<Place> place = follow(path);
  if (!place) return std::unexpected(place.error());
  if (auto ours = check_ours(*place); !ours) return ours;
  if (!place->is_magic && (!place->file.valid() || S_ISREG(place->about.st_mode)))
    return replace_file(std::move(*place), bytes);
  const Result<Fd> fd = open_known(*place);
  if (!fd) return std::unexpected(fd.error());
  return write_all(fd->get(), bytes);
}

Result<Fd> open_place(const std::string& path) {
  if (const int given = descriptor_of(path); given >= 0) {
    Fd fd(::fcntl(given, F_DUPFD_CLOEXEC, 0));
    if (!fd.valid()) return fail(std::strerror(errno));
    return fd;
  }
  const Result<Place> place = follow(path);
  if (!place) return std::unexpected(place.error());
  if (auto ours = check_ours(*place); !ours) return std::unexpected(ours.error());
  // A second name may be another user's doing, and the first one root's.
  if (S_ISREG(place->about.st_mode) && place->about.st_nlink > 1) return fail("it has other names");
  if (place->file.valid()) return open_known(*place);
  Fd fd(::openat(place->directory.get(), place->name.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC, new_file_mode));
  if (!fd.valid()) return fail(std::strerror(errno));
  return fd;
}

}  // namespace

bool is_planted(int directory, const struct stat& entry) {
  struct stat folder{};
  if (::fstat(directory, &folder) != 0) return true;
  const bool is_shared = (folder.st_mode & S_ISVTX) && (folder.st_mode & (S_IWGRP | S_IWOTH));
  return is_shared && entry.st_uid != folder.st_uid && entry.st_uid != ::geteuid();
}

Result<> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  if (errno != EEXIST) return fail_errno("making " + path);
  const Result<Place> there = follow(path);
  if (!there) return std::unexpected(there.error().in("making " + path));
  if (!S_ISDIR(there->about.st_mode)) return fail("making " + path + ": " + std::strerror(EEXIST));
  if (is_planted(there->directory.get(), there->about))
    return fail("making " + path + ": another user made it, in a folder that others write to");
  return {};
}

Result<> write_file(const std::string& path, std::string_view bytes) {
  const Result<> written = write_to(path, bytes);
  if (!written) return std::unexpected(written.error().in("writing " + path));
  return {};
}

Result<Fd> open_to_write(const std::string& path) {
  Result<Fd> opened = open_place(path);
  if (!opened) return std::unexpected(opened.error().in("writing " + path));
  return opened;
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  Fd opened;
  int fd = STDIN_FILENO;
  if (path != "-") {
    opened = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    fd = opened.get();
    if (fd < 0) return fail_errno("reading " + path);
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno("reading " + path);
  const bool has_size = S_ISREG(info.st_mode) && info.st_size > 0;

  std::string bytes;
  size_t filled = 0;
  for (;;) {
    if (filled > limit)
      return fail("reading " + path + ": larger than " + std::to_string(limit >> 20) + " MiB");
    if (filled == bytes.size()) {
      const size_t first = has_size ? static_cast<size_t>(info.st_size) + 1 : size_t{1} << 16;
      bytes.resize(std::min(limit + 1, bytes.empty() ? first : 2 * bytes.size()));
    }
    const ssize_t n = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("reading " + path);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace pkprof
