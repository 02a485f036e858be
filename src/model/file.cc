// SPDX-License-Identifier: Apache-2.0
// See file.h. O_TMPFILE gives the nameless file; where the file system has none (NFS, FUSE,
// some overlays), a file with a random name stands in for it and is removed on failure.
#include "model/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <memory>
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

// Where a chain of symbolic links leads, also when nothing is there yet; `path` when unclear.
std::string resolve_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string random_name(const std::string& path) {
  static std::random_device random;
  return path + "." + std::to_string(random()) + ".tmp";
}

// A file without its final name. Unless keep() succeeds, nothing of it stays.
class PendingFile {
 public:
  explicit PendingFile(std::string path) : path_(std::move(path)) {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  [[nodiscard]] int fd() const { return fd_.get(); }

  Result<> open() {
    const std::string directory = directory_of(path_);
    fd_ = Fd(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, new_file_mode));
    for (int i = 0; i < name_attempts && !fd_.valid(); ++i) {
      const std::string name = random_name(path_);
      fd_ = Fd(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, new_file_mode));
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
    if (name_ != path_ && ::rename(name_.c_str(), path_.c_str()) != 0)
      return fail(std::strerror(errno));
    name_.clear();
    // So that the name survives a power cut too; not every file system can, and it is not vital.
    const Fd directory(::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.valid()) ::fsync(directory.get());
    return {};
  }

 private:
  // linkat does not replace, so an existing file needs a name beside it and a rename.
  Result<> give_name() {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
    std::string name = path_;
    for (int i = 0; i < name_attempts; ++i) {
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        name_ = name;
        return {};
      }
      if (errno != EEXIST) break;
      name = random_name(path_);
    }
    return fail(std::strerror(errno));
  }

  std::string path_;
  Fd fd_;
  std::string name_;  // what it is called now, empty while it is nameless
};

Result<> replace_file(const std::string& path, std::string_view bytes) {
  PendingFile file(path);
  Result<> done = file.open();
  if (done) done = write_all(file.fd(), bytes);
  if (done) done = file.keep();
  return done;
}

Result<> write_to(const std::string& path, std::string_view bytes) {
  if (const int fd = descriptor_of(path); fd >= 0) return write_all(fd, bytes);
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return replace_file(resolve_links(path), bytes);
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return fail(std::strerror(errno));
  return write_all(fd.get(), bytes);
}

}  // namespace

Result<> write_file(const std::string& path, std::string_view bytes) {
  const Result<> written = write_to(path, bytes);
  if (!written) return std::unexpected(written.error().in("writing " + path));
  return {};
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
