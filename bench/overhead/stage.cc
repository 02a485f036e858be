// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace pkprof::overhead {
namespace {

constexpr uint64_t kDiskMegabytes = 512;
constexpr size_t kFileMegabytes = 64;
constexpr std::string_view kDirPrefix = "pkprof-overhead-";  // then the pid, then something random

void remove_leftovers(const std::filesystem::path& parent) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kDirPrefix)) continue;
    const int pid = std::atoi(name.c_str() + kDirPrefix.size());
    if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH) continue;
    std::filesystem::remove_all(entry.path(), error);
  }
}

// While it lives files without a name are made in memory, if there is room for the disk: the noise
// of a real disk is not what is measured.
class InMemory {
 public:
  InMemory() {
    struct statvfs info = {};
    const bool room = statvfs("/dev/shm", &info) == 0 &&
                      info.f_bavail * info.f_frsize > 2 * (kDiskMegabytes << 20);
    if (!room) return;
    if (const char* old = std::getenv("TMPDIR")) old_ = old;
    setenv("TMPDIR", "/dev/shm", 1);
    changed_ = true;
  }
  InMemory(const InMemory&) = delete;
  InMemory& operator=(const InMemory&) = delete;
  ~InMemory() {
    if (!changed_) return;
    if (old_) {
      setenv("TMPDIR", old_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }

 private:
  bool changed_ = false;
  std::optional<std::string> old_;
};

}  // namespace

Result<TempDir> TempDir::create() {
  const auto parent = std::filesystem::temp_directory_path();
  remove_leftovers(parent);
  std::string path =
      (parent / (std::string(kDirPrefix) + std::to_string(getpid()) + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) return fail_errno("making a directory like " + path);
  chmod(path.c_str(), 0755);  // a web server does not stay root
  return TempDir(path);
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream in(std::string(path ? path : "") + ":/usr/sbin:/sbin:/usr/bin:/bin");
  std::string directory;
  while (std::getline(in, directory, ':')) {
    std::string file = directory;
    file.append("/").append(name);
    if (!directory.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Result<> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail_errno("writing " + path);
  return {};
}

Result<testnet::Pair*> Stage::pair() {
  if (!pair_) {
    auto pair = testnet::Pair::create();
    if (!pair) return std::unexpected(pair.error());
    pair_.emplace(std::move(*pair));
  }
  return &*pair_;
}

Result<std::string> Stage::disk_path(const std::string& name) {
  if (!disk_) {
    const InMemory memory;
    auto disk = testnet::Disk::create({.megabytes = kDiskMegabytes});
    if (!disk) return std::unexpected(disk.error());
    disk_.emplace(std::move(*disk));
  }
  return disk_->path(name);
}

Result<std::string> Stage::disk_file() {
  if (!disk_file_.empty()) return disk_file_;
  auto path = disk_path("file");
  if (!path) return path;
  const Fd fd(open(path->c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail_errno("making " + *path);
  const std::vector<char> block(1 << 20, 'x');
  for (size_t i = 0; i < kFileMegabytes; ++i) {
    if (write(fd.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      return fail_errno("writing " + *path);
    }
  }
  if (fsync(fd.get()) != 0) return fail_errno("syncing " + *path);
  return disk_file_ = *path;
}

}  // namespace pkprof::overhead
