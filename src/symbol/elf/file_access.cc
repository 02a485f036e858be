// SPDX-License-Identifier: Apache-2.0
// Files are opened in two steps: O_PATH names the object without opening it, fstat and fstatfs tell
// what it is, and only a regular file of a real file system is opened, through the descriptor that
// was examined.
#include "symbol/elf/file_access.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

namespace pkprof {
namespace {

// openat2 came with Linux 5.6; before it links are followed from our own root. What they lead to
// is still verified by its inode.
Fd open_below(int root, const std::string& path, int flags = 0, uint64_t resolve = 0) {
  struct open_how how = {};
  how.flags = static_cast<uint64_t>(O_PATH | O_CLOEXEC | flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  if (errno != ENOSYS && errno != EPERM) return Fd();
  const size_t skip = std::min(path.find_first_not_of('/'), path.size());
  return Fd(::openat(root, path.c_str() + skip, O_PATH | O_CLOEXEC | flags));
}

// The kernel's own files are regular, too, but opening or reading one may do something.
bool is_kernels_own(const Fd& named) {
  constexpr uint32_t kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        TRACEFS_MAGIC,
                                DEBUGFS_MAGIC,    SECURITYFS_MAGIC,   SELINUX_MAGIC,
                                BPF_FS_MAGIC,     CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                EFIVARFS_MAGIC,   PSTOREFS_MAGIC};
  struct statfs fs = {};
  if (::fstatfs(named.get(), &fs) != 0) return true;
  return std::ranges::find(kinds, static_cast<uint32_t>(fs.f_type)) != std::end(kinds);
}

Result<Fd> reopen_if_regular(const Fd& named, const std::string& path) {
  if (!named.valid()) return fail_errno(path);
  struct stat st = {};
  if (::fstat(named.get(), &st) != 0) return fail_errno(path);
  if (!S_ISREG(st.st_mode)) return fail(path + ": not a regular file");
  if (is_kernels_own(named)) return fail(path + ": a file of the kernel's, which is not read");
  const std::string link = "/proc/self/fd/" + std::to_string(named.get());
  Fd fd(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return fail_errno(path);
  return fd;
}

}  // namespace

Result<std::shared_ptr<RootDir>> RootDir::open(const std::string& path) {
  auto root = std::make_shared<RootDir>();
  root->fd_ = Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct statx st = {};
  if (!root->fd_.valid() || ::statx(root->fd_.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                                    STATX_INO | STATX_MNT_ID, &st) != 0) {
    return fail_errno(path);
  }
  root->identity_ = {st.stx_mnt_id, gnu_dev_makedev(st.stx_dev_major, st.stx_dev_minor),
                     st.stx_ino};
  return root;
}

Result<Fd> RootDir::open_regular(const std::string& path) const {
  return reopen_if_regular(open_below(fd_.get(), path), path);
}

Result<Fd> RootDir::open_owned(const std::string& path, std::span<const uid_t> owners) const {
  const Fd named = open_below(fd_.get(), path, O_NOFOLLOW);
  struct stat st = {};
  if (!named.valid() || ::fstat(named.get(), &st) != 0) return fail_errno(path);
  if (st.st_nlink > 1) return fail(path + ": has other names");
  if (std::ranges::find(owners, st.st_uid) == owners.end()) return fail(path + ": another user's");
  return reopen_if_regular(named, path);
}

std::optional<FileStamp> RootDir::look_at(const std::string& path) const {
  const Fd named = open_below(fd_.get(), path, 0, RESOLVE_CACHED);
  struct statx st = {};
  if (!named.valid() ||
      ::statx(named.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) != 0) {
    return std::nullopt;
  }
  if (!S_ISREG(st.stx_mode)) return std::nullopt;
  return FileStamp{gnu_dev_makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino,
                   st.stx_ctime.tv_sec * 1'000'000'000 + st.stx_ctime.tv_nsec,
                   static_cast<int64_t>(st.stx_size)};
}

Result<Fd> open_regular_magic(const std::string& path) {
  return reopen_if_regular(Fd(::open(path.c_str(), O_PATH | O_CLOEXEC)), path);
}

Result<FileStamp> stamp_of(int fd) {
  struct stat st = {};
  if (::fstat(fd, &st) != 0) return fail_errno("fstat");
  return FileStamp{st.st_dev, st.st_ino,
                   int64_t{st.st_ctim.tv_sec} * 1'000'000'000 + st.st_ctim.tv_nsec, st.st_size};
}

Result<std::string> read_up_to(int fd, size_t limit, bool* truncated) {
  std::string text;
  size_t used = 0;
  if (truncated != nullptr) *truncated = false;
  for (;;) {
    // Room for one byte more than the limit, to see whether there is more.
    if (used == text.size()) {
      // Not filled: memory that is not used is not there.
      text.resize_and_overwrite(std::min(limit + 1, std::max<size_t>(size_t{64} << 10, used * 8)),
                                [](char*, size_t size) { return size; });
    }
    const ssize_t got = ::read(fd, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read");
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > limit) {
      if (truncated != nullptr) *truncated = true;
      used = limit;
      break;
    }
  }
  text.resize(used);
  return text;
}

Result<std::string> read_proc_file(const std::string& path, size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(path);
  auto text = read_up_to(fd.get(), limit);
  if (!text) return std::unexpected(text.error().in(path));
  return text;
}

std::string to_hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

}  // namespace pkprof
