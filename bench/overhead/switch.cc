// SPDX-License-Identifier: Apache-2.0
#include "switch.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace pkprof::overhead {
namespace {

constexpr int kAnswerMs = 20'000;
constexpr std::string_view kAnswer = "ack\n";

Result<Fd> make_fifo(const std::string& path) {
  unlink(path.c_str());
  if (mkfifo(path.c_str(), 0600) != 0) return fail_errno("making " + path);
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("opening " + path);
  return fd;
}

}  // namespace

Result<ControlFifos> ControlFifos::make(const std::string& path) {
  auto commands = make_fifo(path + ".commands");
  if (!commands) return std::unexpected(commands.error());
  auto answers = make_fifo(path + ".answers");
  if (!answers) return std::unexpected(answers.error());
  return ControlFifos(path, std::move(*commands), std::move(*answers));
}

std::string ControlFifos::setting() const {
  return "fifo:" + path_ + ".commands," + path_ + ".answers";
}

Result<> ControlFifos::say(const std::string& command) const {
  const std::string line = command + "\n";
  if (write(commands_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail_errno("telling it to " + command);
  pollfd ready = {answers_.get(), POLLIN, 0};
  if (poll(&ready, 1, kAnswerMs) != 1) return fail("it does not answer when told to " + command);
  std::array<char, kAnswer.size()> answer = {};
  const ssize_t got = read(answers_.get(), answer.data(), answer.size());
  if (std::string_view(answer.data(), got < 0 ? 0 : static_cast<size_t>(got)) != kAnswer)
    return fail("it answers something else than \"ack\" when told to " + command);
  return {};
}

Result<PerfEvents> PerfEvents::of(pid_t pid) {
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return fail_errno("getting at process " + std::to_string(pid));
  PerfEvents events;
  std::error_code error;
  const std::filesystem::path directory = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(file.path(), gone) != "anon_inode:[perf_event]") continue;
    Fd event(static_cast<int>(
        syscall(SYS_pidfd_getfd, process.get(), std::atoi(file.path().filename().c_str()), 0)));
    if (!event.valid()) return fail_errno("getting at its events");
    events.events_.push_back(std::move(event));
  }
  if (error) return fail("reading " + directory.string() + ": " + error.message());
  if (events.events_.empty()) return fail("it has no event of perf's open");
  return events;
}

Result<> PerfEvents::enable(bool on) const {
  for (const Fd& event : events_)
    if (ioctl(event.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) != 0)
      return fail_errno(on ? "turning it on" : "turning it off");
  return {};
}

Result<uint64_t> PerfEvents::counted() const {
  uint64_t sum = 0;
  for (const Fd& event : events_) {
    std::array<uint64_t, 8> values = {};  // the count is the first, whatever else was asked for
    if (read(event.get(), values.data(), sizeof values) <= 0) return fail_errno("reading an event");
    sum += values[0];
  }
  return sum;
}

}  // namespace pkprof::overhead
