// SPDX-License-Identifier: Apache-2.0
#include "process/proc_stat.h"

#include <linux/limits.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/clock.h"

namespace pkprof {

std::string proc_exe(uint32_t pid) {
  char path[PATH_MAX];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t n = readlink(link.c_str(), path, sizeof(path));
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "";
}

uint32_t proc_parent(uint32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("PPid:"))
      return static_cast<uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
  return 0;
}

uint32_t proc_process(uint32_t tid) {
  std::ifstream in("/proc/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Tgid:"))
      return static_cast<uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
  return tid;
}

std::optional<ProcStat> proc_stat(uint32_t pid) {
  // The thread's own: for the whole process the kernel adds up the times of all its threads.
  const std::string number = std::to_string(pid);
  std::ifstream in("/proc/" + number + "/task/" + number + "/stat");
  std::string text;
  std::getline(in, text);
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  ProcStat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string field;
  for (int i = 3; i <= 22 && rest >> field; ++i) {  // proc(5) numbers them from 1
    if (i == 4) stat.parent = static_cast<uint32_t>(std::strtoul(field.c_str(), nullptr, 10));
    if (i == 20) stat.threads = static_cast<uint32_t>(std::strtoul(field.c_str(), nullptr, 10));
    if (i == 22) stat.start_boottime = std::strtoull(field.c_str(), nullptr, 10);
  }
  stat.start_boottime *= 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  stat.start_boottime -= clock_offsets().boottime_ns;
  return stat;
}

bool is_gone(uint32_t number) {
  return kill(static_cast<pid_t>(number), 0) && errno == ESRCH;
}

}  // namespace pkprof
