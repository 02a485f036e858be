// SPDX-License-Identifier: Apache-2.0
// Whom a command runs as: recording takes root's rights, what is recorded seldom does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string home;
  std::string shell;
};

// By name or number. Fails if there is none, or if we may not become it.
[[nodiscard]] Result<User> find_user(const std::string& name);

// From here on this process is the user's, in rights and environment (HOME, LOGNAME, SHELL, USER).
// False, with errno, if the kernel refuses.
[[nodiscard]] bool become(const User& user);

}  // namespace pkprof
