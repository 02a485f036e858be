// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "process/callers_limits.h"
#include "process/user.h"

namespace pkprof {
namespace {

[[noreturn]] void run_child(const std::vector<std::string>& command,
                            const std::optional<User>& user,
                            const std::function<void()>& before_exec, int gate, int error) {
  give_back_callers_limits();
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  char byte = 0;
  if (read(gate, &byte, 1) != 1) _exit(125);  // the parent gave up
  if (before_exec) before_exec();
  if (!user || become(*user)) execvp(argv[0], argv.data());
  const int err = errno;
  (void)!write(error, &err, sizeof(err));
  _exit(err == ENOENT ? 127 : 126);
}

}  // namespace

Result<Child> Child::spawn(const std::vector<std::string>& command, const std::string& user,
                           const std::function<void()>& before_exec) {
  std::optional<User> becomes;
  if (!user.empty()) {
    auto found = find_user(user);
    if (!found) return std::unexpected(found.error());
    becomes = std::move(*found);
  }
  int gate[2];
  int error[2];
  if (pipe2(gate, O_CLOEXEC)) return fail_errno("starting the command");
  Fd gate_read(gate[0]);
  Child child;
  child.gate_ = Fd(gate[1]);
  if (pipe2(error, O_CLOEXEC)) return fail_errno("starting the command");
  child.error_ = Fd(error[0]);
  const Fd error_write(error[1]);
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("starting the command");
  if (pid == 0) {
    child.gate_.reset();
    run_child(command, becomes, before_exec, gate_read.get(), error_write.get());
  }
  child.pid_ = pid;
  return child;
}

Child::Child(Child&& o) noexcept
    : pid_(std::exchange(o.pid_, -1)),
      gate_(std::move(o.gate_)),
      error_(std::move(o.error_)),
      released_(o.released_),
      reaped_(o.reaped_),
      status_(o.status_) {}

Child::~Child() {
  if (pid_ < 0 || reaped_ || released_) return;  // a running command is left alone
  gate_.reset();
  waitpid(pid_, nullptr, 0);
}

Result<> Child::go() {
  released_ = true;
  if (write(gate_.get(), "", 1) != 1) return fail_errno("starting the command");
  gate_.reset();
  // The pipe closes at exec; bytes come only if there was none.
  int err = 0;
  if (read(error_.get(), &err, sizeof(err)) == sizeof(err)) {
    waitpid(pid_, &status_, 0);
    reaped_ = true;
    status_ = WEXITSTATUS(status_);
    return fail_errno("cannot be executed", err);
  }
  return {};
}

bool Child::ended() {
  if (reaped_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  reaped_ = true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

}  // namespace pkprof
