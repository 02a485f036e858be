// SPDX-License-Identifier: Apache-2.0
// A root directory is identified by the mount namespace and the directory's device and inode: a
// chroot differs in the second, a container in the first.
#include "symbol/process_info.h"

#include <sys/stat.h>

#include "symbol/parse.h"

namespace pkprof {
namespace {

constexpr size_t max_text = 65536;

std::string identity_of(const std::string& proc) {
  struct stat ns = {};
  struct stat root = {};
  if (::stat((proc + "/ns/mnt").c_str(), &ns) != 0 ||
      ::stat((proc + "/root/").c_str(), &root) != 0) {
    return "";
  }
  return std::to_string(ns.st_ino) + ":" + std::to_string(root.st_dev) + ":" +
         std::to_string(root.st_ino);
}

// The last number of "NSpid:\t4711\t17", or the first of "Uid:\t0\t0".
void read_status_line(std::string_view line, ProcessInfo& info) {
  const bool pid = line.starts_with("NSpid:");
  if (!pid && !line.starts_with("Uid:")) return;
  line.remove_prefix(line.find(':') + 1);
  for (uint64_t number = 0;;) {
    skip_spaces(line);
    if (!take_number(line, 10, number)) return;
    if (pid) {
      info.inner_pid = static_cast<uint32_t>(number);
    } else {
      info.uid = static_cast<uint32_t>(number);
      return;
    }
  }
}

}  // namespace

uint64_t process_start_time(uint32_t pid) {
  const auto stat = read_proc_file("/proc/" + std::to_string(pid) + "/stat", max_text);
  if (!stat) return 0;
  // Field 22; comm, the second, may hold anything, but its closing parenthesis is the last.
  std::string_view rest = *stat;
  const size_t close = rest.rfind(')');
  if (close == std::string_view::npos) return 0;
  rest.remove_prefix(close + 1);
  for (int field = 2; field < 21; ++field) {
    skip_spaces(rest);
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return 0;
    rest.remove_prefix(space);
  }
  skip_spaces(rest);
  uint64_t start = 0;
  return take_number(rest, 10, start) ? start + 1 : 0;  // the first processes start at 0
}

Result<ProcessInfo> read_process_info(uint32_t pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  ProcessInfo info;
  info.inner_pid = pid;
  info.start_time = process_start_time(pid);
  if (info.start_time == 0) return fail(proc + ": no such process");
  if (const auto status = read_proc_file(proc + "/status", max_text)) {
    std::string_view text = *status;
    for (std::string_view line; take_line(text, line);) read_status_line(line, info);
  }
  static const std::string own = identity_of("/proc/self");
  info.root_identity = identity_of(proc);
  if (info.root_identity == own) info.root_identity.clear();
  return info;
}

}  // namespace pkprof
