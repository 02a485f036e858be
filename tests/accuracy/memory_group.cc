// SPDX-License-Identifier: Apache-2.0
#include "memory_group.h"

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace pkprof::accuracy {

// Where the hierarchy is mounted; a mount of our own goes with it.
class MemoryHierarchy {
 public:
  static std::shared_ptr<MemoryHierarchy> find() {
    std::ifstream mounts("/proc/mounts");
    std::string unified;
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream in(line);
      std::string device, path, type, options;
      in >> device >> path >> type >> options;
      if (type == "cgroup" && ("," + options + ",").find(",memory,") != std::string::npos)
        return std::make_shared<MemoryHierarchy>(path, 1, false);
      if (type == "cgroup2" && unified.empty()) unified = path;
    }
    std::string controllers;
    std::getline(std::ifstream(unified + "/cgroup.controllers") >> std::ws, controllers);
    if (!unified.empty() && (" " + controllers + " ").find(" memory ") != std::string::npos) {
      std::ofstream(unified + "/cgroup.subtree_control") << "+memory" << std::flush;
      return std::make_shared<MemoryHierarchy>(unified, 2, false);
    }
    std::string own = "/tmp/pkprof-cgroup-XXXXXX";
    if (mkdtemp(own.data()) == nullptr) return {};
    if (mount("cgroup", own.c_str(), "cgroup", 0, "memory") == 0)
      return std::make_shared<MemoryHierarchy>(own, 1, true);
    rmdir(own.c_str());
    return {};
  }
  MemoryHierarchy(std::string where, int which, bool is_ours)
      : path(std::move(where)), version(which), is_ours_(is_ours) {}
  ~MemoryHierarchy() {
    if (!is_ours_) return;
    umount2(path.c_str(), MNT_DETACH);
    rmdir(path.c_str());
  }
  MemoryHierarchy(const MemoryHierarchy&) = delete;
  MemoryHierarchy& operator=(const MemoryHierarchy&) = delete;

  const std::string path;
  const int version;

 private:
  bool is_ours_;
};

namespace {

bool put(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

}  // namespace

Result<MemoryGroup> MemoryGroup::create(uint64_t bytes, OnFull on_full) {
  std::shared_ptr<MemoryHierarchy> hierarchy = MemoryHierarchy::find();
  if (!hierarchy) return fail("no control groups for memory");
  const bool is_first = hierarchy->version == 1;
  std::string path = hierarchy->path + "/pkprof-memory-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return fail_errno("a control group for memory");
  MemoryGroup group(std::move(hierarchy), path);
  const std::string limit = path + (is_first ? "/memory.limit_in_bytes" : "/memory.max");
  if (bytes != 0 && !put(limit, std::to_string(bytes))) return fail_errno(limit);
  if (on_full == OnFull::wait && (!is_first || !put(path + "/memory.oom_control", "1")))
    return fail("control groups for memory whose members wait: hierarchy 1 alone has them");
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept
    : hierarchy_(std::move(other.hierarchy_)), path_(std::exchange(other.path_, {})) {}

MemoryGroup::~MemoryGroup() {
  using namespace std::chrono_literals;
  for (int i = 0; !path_.empty() && i < 100 && rmdir(path_.c_str()) != 0; ++i) {
    std::ifstream members(path_ + "/cgroup.procs");
    for (pid_t pid = 0; i > 20 && members >> pid;) kill(pid, SIGKILL);
    std::this_thread::sleep_for(20ms);
  }
}

void MemoryGroup::add(int pid) const {
  put(path_ + "/cgroup.procs", std::to_string(pid));
}

uint64_t MemoryGroup::used() const {
  uint64_t bytes = 0;
  std::ifstream(path_ +
                (hierarchy_->version == 1 ? "/memory.usage_in_bytes" : "/memory.current")) >>
      bytes;
  return bytes;
}

uint64_t MemoryGroup::counter(const char* wanted) const {
  std::ifstream in(path_ + "/memory.stat");
  uint64_t value = 0;
  for (std::string name; in >> name >> value;)
    if (name == wanted) return value;
  return 0;
}

uint64_t MemoryGroup::anonymous() const {
  return counter(hierarchy_->version == 1 ? "total_rss" : "anon");
}

uint64_t MemoryGroup::page_cache() const {
  return counter(hierarchy_->version == 1 ? "total_cache" : "file");
}

}  // namespace pkprof::accuracy
