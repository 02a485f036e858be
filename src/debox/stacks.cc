// SPDX-License-Identifier: Apache-2.0
#include "debox/stacks.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

namespace pkprof {
namespace {

// "copy at main.c:12", "read (libc.so.6)", "0x7f...".
std::string frame_text(const UserFrame& frame, uint64_t address) {
  std::string text = frame.function;
  if (text.empty()) {
    char number[24];
    std::snprintf(number, sizeof number, "0x%llx", static_cast<unsigned long long>(address));
    text = number;
  }
  const auto last_of = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  if (frame.line)
    return text + " at " + last_of(frame.source_file) + ":" + std::to_string(frame.line);
  return frame.map.file.empty() ? text : text + " (" + last_of(frame.map.file) + ")";
}

}  // namespace

Result<DeboxStacks> DeboxStacks::open() {
  const auto cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
  auto sideband = Sideband::open(Sideband::ring_bytes_for(cpus));
  if (!sideband) return std::unexpected(sideband.error());
  return DeboxStacks(std::move(*sideband));
}

void DeboxStacks::add(uint32_t pid) {
  if (!pids_.insert(pid).second || !users_.read_proc(pid, pid)) return;
  users_.set_pid(pid, pid);
}

void DeboxStacks::take_events() {
  for (ProcessEvent& event : sideband_.take()) events_.push_back(std::move(event));
}

void DeboxStacks::forget(uint64_t time) {
  for (; !events_.empty() && events_.front().time <= time; events_.pop_front())
    apply(events_.front());
}

void DeboxStacks::apply(const ProcessEvent& event) {
  using Kind = ProcessEvent::Kind;
  if (event.kind == Kind::fork && pids_.contains(event.parent)) {
    pids_.insert(event.pid);
    users_.fork(event.parent, event.pid);
  }
  if (!pids_.contains(event.pid)) return;
  if (event.kind == Kind::exec) {
    users_.exec(event.pid);
    users_.set_pid(event.pid, event.pid);
  } else if (event.kind == Kind::map) {
    users_.add_map(event.pid, event.map);
  } else if (event.kind == Kind::exit) {
    users_.exit(event.pid);
    pids_.erase(event.pid);
  }
}

std::vector<std::string> DeboxStacks::frames(const SlowCall& slow) {
  const uint32_t pid = slow.record.pid;
  forget(slow.record.start_ns + slow.record.wall_ns);
  std::vector<std::string> frames;
  for (size_t i = 0; i < slow.stack.size(); ++i) {
    const UserFrame frame = users_.find(pid, slow.stack[i] - (i ? 1 : 0));
    if (i && frame.map.start == frame.map.end) break;
    frames.push_back(frame_text(frame, slow.stack[i]));
  }
  return frames;
}

}  // namespace pkprof
