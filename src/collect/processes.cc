// SPDX-License-Identifier: Apache-2.0
#include "collect/processes.h"

#include <linux/limits.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "collect/clock.h"

namespace pkprof {
namespace {

std::string exe_of(uint32_t pid) {
  char path[PATH_MAX];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t n = readlink(link.c_str(), path, sizeof(path));
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "";
}

uint32_t parent_of(uint32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("PPid:"))
      return static_cast<uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
  return 0;
}

// By how much the clock of processes' starts is ahead of ours.
uint64_t suspended_ns() {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const uint64_t now = monotonic_ns();
  const uint64_t since_boot =
      static_cast<uint64_t>(boot.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(boot.tv_nsec);
  constexpr uint64_t between_the_calls = 1'000'000;
  return since_boot > now + between_the_calls ? since_boot - now : 0;
}

// A thread's process; the thread itself where nothing is said.
uint32_t process_of_thread(uint32_t tid) {
  std::ifstream in("/proc/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Tgid:"))
      return static_cast<uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
  return tid;
}

struct Stat {
  std::string comm;
  uint32_t parent = 0;
  uint64_t start_boottime = 0;  // ns, in steps of a clock tick
};

// Of a process or a thread.
std::optional<Stat> stat_of(uint32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  Stat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string field;
  for (int i = 3; i <= 22 && rest >> field; ++i) {  // proc(5) numbers them from 1
    if (i == 4) stat.parent = static_cast<uint32_t>(std::strtoul(field.c_str(), nullptr, 10));
    if (i == 22) stat.start_boottime = std::strtoull(field.c_str(), nullptr, 10);
  }
  stat.start_boottime *= 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return stat;
}

constexpr uint32_t two_ticks = 20;  // in units of a label's start, 2^20 ns

// Clock ticks are coarser than labels, and earlier: within two ticks it is the same start.
bool is_same_start(uint64_t exact, uint64_t coarse) {
  return static_cast<uint32_t>(exact) - static_cast<uint32_t>(coarse) <= two_ticks;
}

uint32_t number_of(uint64_t label) {
  return static_cast<uint32_t>((label & ~PK_ANY_THREAD) >> 32);
}

uint64_t process_label(const pk_label& info) {
  return PK_ANY_THREAD | uint64_t{info.pid} << 32 |
         static_cast<uint32_t>(info.start_boottime >> 20);
}

std::string text_of(const char (&name)[PK_COMM_LEN]) {
  return {name, strnlen(name, sizeof(name))};
}

}  // namespace

Processes::Processes(UserSymbols& symbols, bool threads) : symbols_(symbols), threads_(threads) {}

size_t Processes::make_instance(uint32_t pid, uint32_t parent, uint64_t born) {
  Instance instance;
  instance.pid = pid;
  instance.parent = parent;
  instance.born = born;
  instances_.push_back(std::move(instance));
  by_pid_[pid].push_back(instances_.size() - 1);
  return instances_.size() - 1;
}

// The life of the pid that the time falls into; one that began before the recording if none does.
size_t Processes::instance_at(uint32_t pid, uint64_t time) {
  for (const size_t i : by_pid_[pid])
    if (instances_[i].born <= time && time <= instances_[i].died) return i;
  const uint32_t parent = parent_of(pid);
  const size_t i = make_instance(pid, parent, 0);
  Image image;
  image.key = next_image_++;
  image.exe = exe_of(pid);
  image.unread = true;
  instances_[i].images.push_back(std::move(image));
  if (parent) {
    for (const size_t p : by_pid_[parent])
      if (instances_[p].selected && instances_[p].died == UINT64_MAX) instances_[i].selected = true;
  }
  return i;
}

// The life that a label is of. A process is still sampled for a while after its exit was told, and
// a process's other threads after its first one's: it is the life that it began in, not a new one.
size_t Processes::instance_of(const pk_label& info) {
  const auto known = process_labels_.find(info.pid);
  if (known != process_labels_.end() && known->second == process_label(info)) {
    const auto process = known_.find(known->second);
    if (process != known_.end() && process->second.instance != SIZE_MAX)
      return process->second.instance;
  }
  const uint64_t start =
      info.start_boottime - std::min<uint64_t>(info.start_boottime, suspended_ns());
  for (const size_t i : by_pid_[info.pid])
    if (instances_[i].born <= info.seen && info.seen <= instances_[i].died) return i;
  for (const size_t i : by_pid_[info.pid])
    if (start <= instances_[i].died && instances_[i].died <= info.seen) return i;
  return instance_at(info.pid, info.seen);
}

void Processes::read_image(Instance& instance, Image& image) {
  if (!image.unread) return;
  image.unread = false;
  // Only while it still runs that image: a later exec has other mappings.
  if (&image == &instance.images.back() && instance.died == UINT64_MAX) {
    if (!symbols_.read_proc(image.key, instance.pid)) ++unreadable_;
    symbols_.set_pid(image.key, instance.pid);
  }
}

void Processes::apply_fork(const ProcessEvent& e) {
  if (e.parent == e.pid) return;
  const size_t parent = instance_at(e.parent, e.time);
  const size_t child = make_instance(e.pid, e.parent, e.time);
  Instance& from = instances_[parent];
  Instance& to = instances_[child];
  to.selected = from.selected;
  read_image(from, from.images.back());
  Image image;
  image.since = e.time;
  image.key = next_image_++;
  image.exe = from.images.back().exe;
  symbols_.fork(from.images.back().key, image.key);
  to.images.push_back(std::move(image));
}

void Processes::apply(const ProcessEvent& e) {
  if (e.kind == ProcessEvent::Kind::fork) {
    apply_fork(e);
    return;
  }
  Instance& instance = instances_[instance_at(e.pid, e.time)];
  switch (e.kind) {
    case ProcessEvent::Kind::exec: {
      Image image;
      image.since = e.time;
      image.key = next_image_++;
      image.comm = e.comm;
      symbols_.exec(image.key);
      symbols_.set_pid(image.key, e.pid);
      dead_images_.push_back(instance.images.back().key);
      instance.images.push_back(std::move(image));
      break;
    }
    case ProcessEvent::Kind::map: {
      Image& image = instance.images.back();
      read_image(instance, image);
      if (image.exe.empty() && e.map.file.starts_with("/")) image.exe = e.map.file;
      symbols_.add_map(image.key, e.map);
      break;
    }
    case ProcessEvent::Kind::exit:
      instance.died = e.time;
      dead_images_.push_back(instance.images.back().key);
      break;
    case ProcessEvent::Kind::fork:
      break;
  }
}

void Processes::add_events(const std::vector<ProcessEvent>& events) {
  for (const ProcessEvent& e : events) apply(e);
}

void Processes::add_label(uint64_t label, const pk_label& info) {
  note(label, info);
  if (!threads_) return;
  const uint64_t process = process_label(info);
  note(process, info);
  process_labels_[info.pid] = process;
}

void Processes::note(uint64_t label, const pk_label& info) {
  const bool fresh = !known_.contains(label);
  Known& k = known_[label];
  if (fresh || info.seen >= k.info.seen) k.info = info;
  if (info.flags & PK_LABEL_KTHREAD) return;
  if (k.instance == SIZE_MAX) k.instance = instance_of(info);
  const Instance& instance = instances_[k.instance];
  int64_t execs = 0;
  for (const Image& image : instance.images)
    if (image.since > instance.born && image.since <= info.seen) ++execs;
  k.first_exec = static_cast<int64_t>(info.exec_id) - execs;
  if (k.cgroup.empty()) k.cgroup = cgroups_.path(info.cgroup, info.pid);
  if (k.container.name.empty()) k.container = containers_.of(k.cgroup);
}

void Processes::meet(uint64_t label) {
  if (known_.contains(label)) return;
  const uint32_t number = number_of(label);
  const auto stat = stat_of(number);
  if (!stat || !is_same_start(label, stat->start_boottime >> 20)) return;
  pk_label info{};
  info.pid = number;
  info.tid = number;
  info.seen = monotonic_ns();
  info.parent = stat->parent;
  info.start_boottime = stat->start_boottime;
  std::string comm = stat->comm;
  stat->comm.copy(info.thread_comm, sizeof(info.thread_comm) - 1);
  if (thread_of(label)) {
    info.pid = process_of_thread(number);
    const auto leader = stat_of(info.pid);
    if (!leader) return;
    info.start_boottime = leader->start_boottime;
    comm = leader->comm;
  }
  comm.copy(info.comm, sizeof(info.comm) - 1);
  info.cgroup = 0;
  note(label, info);
}

void Processes::bury() {
  for (const uint64_t key : to_bury_) symbols_.exit(key);
  to_bury_ = std::move(dead_images_);
  dead_images_.clear();
}

uint64_t Processes::image_of(uint64_t label, uint32_t exec_id) {
  const auto it = known_.find(label);
  if (it == known_.end() || it->second.instance == SIZE_MAX) return 0;
  Instance& instance = instances_[it->second.instance];
  const int64_t last = static_cast<int64_t>(instance.images.size()) - 1;
  const int64_t index =
      std::clamp<int64_t>(static_cast<int64_t>(exec_id) - it->second.first_exec, 0, last);
  Image& image = instance.images[static_cast<size_t>(index)];
  read_image(instance, image);
  return image.key;
}

// What is known of the thread's process best: /proc's start of it would make it another one.
const Processes::Known* Processes::process_of(const Known& thread) const {
  const auto number = process_labels_.find(thread.info.pid);
  if (number == process_labels_.end()) return &thread;
  const auto process = known_.find(number->second);
  if (process == known_.end()) return &thread;
  const uint64_t exact = process->second.info.start_boottime >> 20;
  return is_same_start(exact, thread.info.start_boottime >> 20) ? &process->second : &thread;
}

Label Processes::label_of(uint64_t label) const {
  Label out;
  out.kind = LabelKind::process;
  out.pid = number_of(label);
  out.start_ns = (label & UINT32_MAX) << 20;
  const auto it = known_.find(label);
  if (it == known_.end()) return out;
  const Known& k = *process_of(it->second);
  out.pid = k.info.pid;
  out.start_ns = k.info.start_boottime;
  out.kthread = k.info.flags & PK_LABEL_KTHREAD;
  out.parent_pid = k.info.parent;
  out.comm = text_of(k.info.comm);
  out.cgroup = k.cgroup;
  out.container = k.container;
  if (k.instance == SIZE_MAX) return out;
  const Image& image = instances_[k.instance].images.back();
  out.exe = image.exe;
  if (image.since > k.info.seen && !image.comm.empty()) out.comm = image.comm;
  return out;
}

uint32_t Processes::thread_of(uint64_t label) const {
  if (!threads_) return 0;
  if (!(label & PK_ANY_THREAD)) return number_of(label);
  const auto it = known_.find(label);  // a kernel thread is one thread, whatever is asked
  return it != known_.end() && it->second.info.flags & PK_LABEL_KTHREAD ? number_of(label) : 0;
}

std::string Processes::thread_name(uint64_t label) const {
  const auto it = known_.find(label);
  return it == known_.end() ? "" : text_of(it->second.info.thread_comm);
}

void Processes::select(uint32_t pid) {
  Instance& instance = instances_[instance_at(pid, UINT64_MAX - 1)];
  instance.selected = true;
}

bool Processes::selected(uint64_t label) const {
  const auto it = known_.find(label);
  return it != known_.end() && it->second.instance != SIZE_MAX &&
         instances_[it->second.instance].selected;
}

}  // namespace pkprof
