// SPDX-License-Identifier: Apache-2.0
#include "probe/pid_namespace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace pkprof {

Result<uint32_t> pid_namespace() {
  constexpr uint32_t machines_own = 0xEFFFFFFC;  // PROC_PID_INIT_INO
  struct stat about{};
  if (::stat("/proc/self/ns/pid", &about) != 0) return fail_errno("looking at /proc/self/ns/pid");
  const auto number = static_cast<uint32_t>(about.st_ino);
  if (number == machines_own) return 0;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self", error);
  if (!error && self == std::to_string(::getpid())) return number;
  return fail(
      "/proc is of another PID namespace than this one: mount this one's (unshare --mount-proc)");
}

}  // namespace pkprof
