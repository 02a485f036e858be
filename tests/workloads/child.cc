// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "testnet.h"

namespace pkprof::testnet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string joined(const Argv& argv) {
  std::string text;
  for (const auto& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

int exit_status(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// In a fresh child: die with the parent. The parent may be gone before prctl() takes hold.
void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
}

}  // namespace

Result<std::string> run_command(const Argv& argv) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd out_reader(out[0]);
  Fd out_writer(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd err_reader(err[0]);
  Fd err_writer(err[1]);

  const auto words = c_strings(argv);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    die_with(parent);
    dup2(out_writer.get(), STDOUT_FILENO);
    dup2(err_writer.get(), STDERR_FILENO);
    execvp(words[0], words.data());
    dprintf(STDERR_FILENO, "cannot be run: %s", std::strerror(errno));
    _exit(127);
  }
  out_writer.reset();
  err_writer.reset();

  std::string text[2];
  pollfd fds[2] = {{out_reader.get(), POLLIN, 0}, {err_reader.get(), POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        text[i].append(buffer, static_cast<size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        fds[i].fd = -1;
      }
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return std::move(text[0]);
  while (!text[1].empty() && text[1].back() == '\n') text[1].pop_back();
  return fail(joined(argv) + ": " +
              (text[1].empty() ? "status " + std::to_string(exit_status(status)) : text[1]));
}

std::string sibling(std::string_view program) {
  std::filesystem::path dir;
  if (const char* chosen = std::getenv("PKPROF_BIN_DIR"); chosen != nullptr && *chosen != '\0') {
    dir = chosen;
  } else {
    std::error_code ignored;
    dir = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  }
  return dir / program;
}

Result<Child> Child::spawn(const Argv& argv, const SpawnOptions& options) {
  if (argv.empty()) return fail("nothing to run");
  Fd ns;
  if (options.ns != nullptr) {
    ns = Fd(open(options.ns->path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!ns.valid()) return fail_errno("opening " + options.ns->path());
  }
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd reader(out[0]);
  Fd writer(out[1]);
  // Closed by a successful exec; carries errno otherwise, so that spawn() knows.
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd report_reader(report[0]);
  Fd report_writer(report[1]);

  const auto words = c_strings(argv);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    die_with(parent);
    bool ok = !ns.valid() || setns(ns.get(), CLONE_NEWNET) == 0;
    if (ok && options.cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<size_t>(options.cpu), &set);
      ok = sched_setaffinity(0, sizeof set, &set) == 0;
    }
    if (ok) {
      for (const auto& setting : options.env) putenv(const_cast<char*>(setting.c_str()));
      dup2(writer.get(), STDOUT_FILENO);
      execvp(words[0], words.data());
    }
    const int err = errno;
    (void)!::write(report_writer.get(), &err, sizeof err);
    _exit(127);
  }
  writer.reset();
  report_writer.reset();
  Child child(pid, std::move(reader));
  int err = 0;
  if (::read(report_reader.get(), &err, sizeof err) == sizeof err) {
    return fail_errno("starting " + joined(argv), err);
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      status_(other.status_),
      out_(std::move(other.out_)),
      output_(std::move(other.output_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
    reaped_ = other.reaped_;
    status_ = other.status_;
    out_ = std::move(other.out_);
    output_ = std::move(other.output_);
  }
  return *this;
}

Child::~Child() {
  kill_and_reap();
}

void Child::kill_and_reap() noexcept {
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGTERM);
  if (auto done = wait(milliseconds(2000)); done) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  reaped_ = true;
}

bool Child::read_some(milliseconds timeout) {
  if (!out_.valid()) return false;
  pollfd fd = {out_.get(), POLLIN, 0};
  if (poll(&fd, 1, static_cast<int>(std::max<long>(timeout.count(), 0))) <= 0) return false;
  char buffer[4096];
  const ssize_t n = ::read(out_.get(), buffer, sizeof buffer);
  if (n <= 0) {
    out_.reset();
    return false;
  }
  output_.append(buffer, static_cast<size_t>(n));
  return true;
}

Result<> Child::wait_for_line(std::string_view line, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const std::string wanted = "\n" + std::string(line) + "\n";
  while (("\n" + output_).find(wanted) == std::string::npos) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (!out_.valid())
      return fail("the child ended without the line \"" + std::string(line) + "\"");
    if (left.count() <= 0) return fail("no line \"" + std::string(line) + "\" in time");
    read_some(left);
  }
  return {};
}

Result<int> Child::wait(milliseconds timeout) {
  if (pid_ <= 0) return fail("no child");
  const auto deadline = Clock::now() + timeout;
  while (!reaped_) {
    read_some(milliseconds(0));
    int status = 0;
    const pid_t got = waitpid(pid_, &status, WNOHANG);
    if (got < 0 && errno != EINTR) return fail_errno("waiting for the child");
    if (got == pid_) {
      reaped_ = true;
      status_ = exit_status(status);
      break;
    }
    if (Clock::now() >= deadline) return fail("the child did not end in time");
    if (!read_some(milliseconds(10)) && !out_.valid()) poll(nullptr, 0, 5);
  }
  // What is in the pipe still; not to its end, which a grandchild may hold open.
  while (read_some(milliseconds(0))) {
  }
  return status_;
}

Result<std::string> Child::stop() {
  if (pid_ <= 0) return fail("no child");
  if (!reaped_) kill(pid_, SIGTERM);
  auto status = wait(milliseconds(5000));
  if (!status) {
    kill_and_reap();
    return std::unexpected(status.error());
  }
  if (*status != 0) return fail("the child ended with status " + std::to_string(*status));
  return output_;
}

std::string Child::last_line() const {
  std::string_view text = output_;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
}

}  // namespace pkprof::testnet
