// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "testnet.h"

namespace pkprof::overhead {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm tm = {};
  gmtime_r(&now, &tm);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &tm);
  return text;
}

// The value of the first such line of /proc/cpuinfo.
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

void describe_machine(RunInfo& info) {
  utsname name = {};
  uname(&name);
  info.date = today();
  info.kernel = std::string(name.release) + " " + name.machine;
  info.cpu = cpu_model();
  info.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  info.memory_mb =
      static_cast<int>((sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGE_SIZE) >> 10)) >> 10);
}

std::string version_of(const std::string& program, const std::string& flag) {
  const auto said = testnet::run_command({program, flag});
  return said ? said->substr(0, said->find('\n')) : "";
}

}  // namespace pkprof::overhead
