// SPDX-License-Identifier: Apache-2.0
#include "process/user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace pkprof {
namespace {

const passwd* look_up(const std::string& name) {
  if (const passwd* found = getpwnam(name.c_str())) return found;
  uid_t uid = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, uid);
  return error == std::errc() && at == end ? getpwuid(uid) : nullptr;
}

}  // namespace

Result<User> find_user(const std::string& name) {
  if (geteuid() != 0) return fail("--user: only root runs a command as another user");
  const passwd* found = look_up(name);
  if (!found) return fail("--user: there is no user " + name);
  User user{.name = found->pw_name,
            .uid = found->pw_uid,
            .gid = found->pw_gid,
            .groups = {},
            .home = found->pw_dir,
            .shell = found->pw_shell};
  int groups = 0;
  getgrouplist(user.name.c_str(), user.gid, nullptr, &groups);
  user.groups.resize(static_cast<size_t>(std::max(groups, 1)));
  groups = static_cast<int>(user.groups.size());
  if (getgrouplist(user.name.c_str(), user.gid, user.groups.data(), &groups) < 0)
    return fail("--user: the groups of " + name + " change all the time");
  user.groups.resize(static_cast<size_t>(groups));
  return user;
}

bool become(const User& user) {
  if (setgroups(user.groups.size(), user.groups.data()) ||
      setresgid(user.gid, user.gid, user.gid) || setresuid(user.uid, user.uid, user.uid))
    return false;
  setenv("HOME", user.home.c_str(), 1);
  setenv("LOGNAME", user.name.c_str(), 1);
  setenv("SHELL", user.shell.c_str(), 1);
  setenv("USER", user.name.c_str(), 1);
  return true;
}

}  // namespace pkprof
