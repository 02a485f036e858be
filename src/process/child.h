// SPDX-License-Identifier: Apache-2.0
// A command that is started stopped and let go when everything is in place, so that its profile
// begins with its first instruction.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

class Child {
 public:
  // Forks; the child waits for go(). A child that was never let go ends with this object. What is
  // to be done `before_exec` the child does when it is let go; then it becomes the user, if one is
  // named.
  static Result<Child> spawn(const std::vector<std::string>& command, const std::string& user = "",
                             const std::function<void()>& before_exec = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Lets it run. Fails, with what the shell would say, if the command cannot be executed.
  Result<> go();
  // Reaps it if it has ended.
  bool ended();
  // After ended(): its exit status as a shell gives it (128 + signal).
  [[nodiscard]] int status() const { return status_; }

 private:
  Child() = default;
  pid_t pid_ = -1;
  Fd gate_;   // writing lets the child go
  Fd error_;  // the child's errno, should exec fail
  bool released_ = false;
  bool reaped_ = false;
  int status_ = 0;
};

}  // namespace pkprof
