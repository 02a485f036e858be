// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/fd.h"

namespace pkprof::scale {
namespace {

int64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

double milliseconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

}  // namespace

Result<Json> in_child(const std::function<Result<Json>()>& what) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return fail_errno("pipe");
  const Fd from(ends[0]);
  Fd to(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    const auto result = what();
    const std::string text = (result ? *result : Json{{"error", result.error().message}}).dump();
    const bool all = write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(all ? 0 : 1);
  }
  to = Fd();
  Json result = Json::parse(read_all(from.get()), nullptr, false);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0 || result.is_discarded()) return fail("a part of the run did not end well");
  if (result.contains("error")) return fail(result["error"].get<std::string>());
  return result;
}

Result<Run> run_program(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  Run run;
  const int64_t begin = nanoseconds(CLOCK_MONOTONIC);
  run.started_unix_ns = nanoseconds(CLOCK_REALTIME);
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    if (!output.empty()) {
      const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(126);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  rusage usage{};
  if (wait4(pid, &run.status, 0, &usage) < 0) return fail_errno("waiting for " + words[0]);
  run.seconds = static_cast<double>(nanoseconds(CLOCK_MONOTONIC) - begin) / 1e9;
  run.cpu_ms = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  run.rss_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  if (run.status != 0) return fail(words[0] + " " + words[1] + " failed");
  return run;
}

double rss_mib() {
  std::ifstream in("/proc/self/statm");
  double pages = 0;
  in >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double now_ms() {
  return static_cast<double>(nanoseconds(CLOCK_MONOTONIC)) / 1e6;
}

}  // namespace pkprof::scale
