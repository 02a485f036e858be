// SPDX-License-Identifier: Apache-2.0
#include "process/targets.h"

#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace pkprof {
namespace {

namespace fs = std::filesystem;

// parent -> children, of all processes there are.
std::multimap<uint32_t, uint32_t> process_tree() {
  std::multimap<uint32_t, uint32_t> tree;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string text;
    std::getline(in, text);
    const size_t close = text.rfind(')');  // the name may hold anything
    if (close == std::string::npos || close + 4 >= text.size()) continue;
    tree.emplace(static_cast<uint32_t>(std::strtoul(text.c_str() + close + 4, nullptr, 10)),
                 static_cast<uint32_t>(std::strtoul(name.c_str(), nullptr, 10)));
  }
  return tree;
}

}  // namespace

Result<> check_target(Target& target) {
  for (const uint32_t pid : target.pids)
    if (pid == 0 || (kill(static_cast<pid_t>(pid), 0) && errno == ESRCH))
      return fail("-p " + std::to_string(pid) + ": no such process");
  if (!target.user.empty() && target.command.empty())
    return fail("--user is for a command: name it behind --");
  if (target.cgroup.empty()) return {};
  const std::string mount = cgroup2_mount();
  if (mount.empty()) return fail("--cgroup: no cgroup v2 hierarchy is mounted");
  std::string path = target.cgroup;
  if (path.starts_with(mount + "/")) path = path.substr(mount.size());
  if (!path.starts_with("/")) path = "/" + path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!fs::is_directory(mount + path))
    return fail("--cgroup " + target.cgroup + ": no such cgroup below " + mount);
  target.cgroup = path;
  return {};
}

void select_processes(Processes& processes, const Target& target, uint32_t command_pid) {
  std::vector<uint32_t> todo = target.pids;
  if (command_pid) todo.push_back(command_pid);
  if (todo.empty()) return;
  const auto tree = process_tree();
  std::set<uint32_t> done;
  while (!todo.empty()) {
    const uint32_t pid = todo.back();
    todo.pop_back();
    if (!done.insert(pid).second) continue;
    processes.select(pid);
    const auto [first, last] = tree.equal_range(pid);
    for (auto it = first; it != last; ++it) todo.push_back(it->second);
  }
}

std::function<bool(uint64_t)> selection(const Processes& processes, const Target& target) {
  if (target.all) return [](uint64_t) { return true; };
  return [&processes, cgroup = target.cgroup](uint64_t label) {
    if (processes.selected(label)) return true;
    if (cgroup.empty()) return false;
    const std::string path = processes.label_of(label).cgroup;
    return cgroup == "/" || path == cgroup || path.starts_with(cgroup + "/");
  };
}

}  // namespace pkprof
