// SPDX-License-Identifier: Apache-2.0
// What belongs to a process is read first, its start time last: who knows the start time knows then
// that all of it is that process's, and not of one that has its pid now.
#include "symbol/process_info.h"

#include "symbol/parse.h"

namespace pkprof {
namespace {

constexpr size_t max_text = 65536;

// A container's mounts are its own, a chroot's directory is.
std::shared_ptr<RootDir> foreign_root(const std::string& proc) {
  static const auto own = RootDir::open("/proc/self/root");
  auto root = RootDir::open(proc + "/root");
  if (!root || !own || (*root)->identity() == (*own)->identity()) return nullptr;
  return *root;
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
  // The thread's own: for the whole process the kernel adds up the times of all its threads.
  const std::string number = std::to_string(pid);
  const auto stat = read_proc_file("/proc/" + number + "/task/" + number + "/stat", max_text);
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
  if (const auto status = read_proc_file(proc + "/status", max_text)) {
    std::string_view text = *status;
    for (std::string_view line; take_line(text, line);) read_status_line(line, info);
  }
  info.root = foreign_root(proc);
  info.start_time = process_start_time(pid);
  if (info.start_time == 0) return fail(proc + ": no such process");
  return info;
}

}  // namespace pkprof
