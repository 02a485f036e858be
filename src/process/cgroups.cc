// SPDX-License-Identifier: Apache-2.0
#include "process/cgroups.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace pkprof {
namespace {

std::string of_process(uint32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "";
}

// Where cgroups come and go (a build a second), a long recording meets any number of them.
constexpr size_t most_known = 16384;

}  // namespace

std::string cgroup2_mount() {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream fields(line);
    std::string id, parent, device, root, point;
    fields >> id >> parent >> device >> root >> point;
    return point;
  }
  return "";
}

Cgroups::Cgroups() : mount_(cgroup2_mount()) {
  if (!mount_.empty()) root_ = Fd(open(mount_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::string Cgroups::by_handle(uint64_t id) const {
  // A kernfs file handle is the inode number (fs/kernfs/mount.c, FILEID_KERNFS).
  constexpr int fileid_kernfs = 0xfe;
  alignas(file_handle) char buffer[sizeof(file_handle) + sizeof(id)];
  auto* handle = reinterpret_cast<file_handle*>(buffer);
  handle->handle_bytes = sizeof(id);
  handle->handle_type = fileid_kernfs;
  std::memcpy(buffer + sizeof(file_handle), &id, sizeof(id));
  const Fd fd(open_by_handle_at(root_.get(), handle, O_PATH | O_CLOEXEC));
  if (!fd.valid()) return "";
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  const ssize_t n = readlink(link.c_str(), path, sizeof(path));
  if (n <= 0) return "";
  const std::string full(path, static_cast<size_t>(n));
  if (!full.starts_with(mount_)) return "";
  const std::string below = full.substr(mount_.size());
  return below.empty() ? "/" : below;
}

std::string Cgroups::path(uint64_t id, uint32_t pid) {
  if (const auto it = known_.find(id); id && it != known_.end()) return it->second;
  std::string path = id && root_.valid() ? by_handle(id) : "";
  if (path.empty()) path = of_process(pid);
  // Those that are still there can be asked for again.
  if (known_.size() >= most_known) known_.clear();
  if (id && !path.empty()) known_.emplace(id, path);
  return path;
}

}  // namespace pkprof
