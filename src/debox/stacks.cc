// SPDX-License-Identifier: Apache-2.0
#include "debox/stacks.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "pkprof/user_abi.h"

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

// Tables are for the walk here alone.
DeboxStacks::DeboxStacks(Sideband sideband)
    : sideband_(std::move(sideband)),
      maker_(std::make_unique<TableMaker>(
          TableMaker::Sink{.put = [](uint64_t, const UnwindTable&) { return Result<>(); },
                           .remove = [](uint64_t) {},
                           .used = [](uint64_t) { return uint64_t{0}; }},
          0)) {}

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

// As the code that is mapped there says.
uint32_t DeboxStacks::rule_at(uint32_t pid, const UserMap& map, uint64_t address) {
  constexpr size_t most_tables = 1000;
  constexpr uint32_t nothing = PK_RULE(PK_BY_NOTHING, 0, 0);
  if (tables_.size() > most_tables) tables_.clear();
  const auto [it, fresh] = tables_.try_emplace({map.inode, map.file});
  if (fresh && (map.inode || map.file == "[vdso]"))
    it->second = maker_->get({0, pid, map.start, map.end, map.inode, map.file});
  return it->second ? it->second->rule_at(address - map.start + map.offset) : nothing;
}

std::vector<uint64_t> DeboxStacks::addresses(uint32_t pid, const TakenCall& taken) {
  constexpr size_t most_frames = 127;
  StackTop top = taken.stack;
  if (!top.ip) return {};
  top.bytes = taken.stack_bytes;
  std::vector<uint64_t> all = {top.ip};
  walk_on(
      top,
      [&](uint64_t address) -> std::optional<uint32_t> {
        const UserMap map = users_.find(pid, address).map;
        if (map.start == map.end) return std::nullopt;
        return rule_at(pid, map, address);
      },
      most_frames, all);
  return all;
}

SlowCall DeboxStacks::named(TakenCall&& taken) {
  SlowCall call = std::move(taken.call);
  const uint32_t pid = call.record.pid;
  forget(call.record.start_ns + call.record.wall_ns);
  for (const uint64_t address : addresses(pid, taken)) {
    const uint64_t place = call.frames.empty() ? address : address - 1;  // a call may come last
    call.frames.push_back(frame_text(users_.find(pid, place), address));
  }
  return call;
}

}  // namespace pkprof
