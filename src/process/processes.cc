// SPDX-License-Identifier: Apache-2.0
#include "process/processes.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "process/proc_stat.h"

namespace pkprof {
namespace {

// By how much the clock of processes' starts is ahead of ours.
uint64_t suspended_ns() {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const uint64_t now = monotonic_ns();
  const uint64_t since_boot = static_cast<uint64_t>(boot.tv_sec) * 1'000'000'000 +
                              static_cast<uint64_t>(boot.tv_nsec) - clock_offsets().boottime_ns;
  constexpr uint64_t between_the_calls = 1'000'000;
  return since_boot > now + between_the_calls ? since_boot - now : 0;
}

constexpr uint32_t two_ticks = 20;  // in units of a label's start, 2^20 ns

// Clock ticks are coarser than labels, and earlier: within two ticks it is the same start.
bool is_same_start(uint64_t exact, uint64_t coarse) {
  return static_cast<uint32_t>(exact) - static_cast<uint32_t>(coarse) <= two_ticks;
}

bool are_same_start(uint64_t one, uint64_t other) {
  return is_same_start(one, other) || is_same_start(other, one);
}

uint32_t number_of(uint64_t label) {
  return static_cast<uint32_t>((label & ~PK_ANY_THREAD) >> 32);
}

std::string text_of(const char (&name)[PK_COMM_LEN]) {
  return {name, strnlen(name, sizeof(name))};
}

}  // namespace

uint64_t Processes::process_label(const pk_label& info) {
  return PK_ANY_THREAD | uint64_t{info.pid} << 32 |
         static_cast<uint32_t>(info.start_boottime >> 20);
}

Processes::Processes(UserSymbols& symbols, bool threads, size_t most)
    : symbols_(symbols), threads_(threads), most_(most), crowd_(most) {}

size_t Processes::make_instance(uint32_t pid, uint32_t parent, uint64_t born) {
  Instance instance;
  instance.pid = pid;
  instance.parent = parent;
  instance.born = born;
  size_t index = instances_.size();
  if (free_.empty()) {
    instances_.push_back(std::move(instance));
  } else {
    index = free_.back();
    free_.pop_back();
    instances_[index] = std::move(instance);
  }
  by_pid_[pid].push_back(index);
  return index;
}

Processes::Image Processes::make_image(uint64_t since, Name exe, std::string comm) {
  Image image;
  image.since = since;
  image.key = next_image_++;
  image.exe = exe;
  image.comm = name(std::move(comm));
  return image;
}

// The life of the pid that the time falls into; one that began before the recording if none does.
size_t Processes::instance_at(uint32_t pid, uint64_t time) {
  for (const size_t i : by_pid_[pid])
    if (instances_[i].born <= time && time <= instances_[i].died) return i;
  return make_unheard(pid, proc_parent(pid), true);
}

// A process whose beginning no event told. What is gone has no more to say in /proc.
size_t Processes::make_unheard(uint32_t pid, uint32_t parent, bool lives) {
  const size_t i = make_instance(pid, parent, 0);
  Image image = make_image(0, name(lives ? proc_exe(pid) : ""));
  image.unread = lives;
  instances_[i].images.push_back(image);
  if (!parent) return i;
  for (const size_t p : by_pid_[parent])
    if (instances_[p].selected && instances_[p].died == UINT64_MAX) instances_[i].selected = true;
  return i;
}

// The same of a pid that is known to be at work then: its process's other threads may be long after
// its first one's end was told.
size_t Processes::life_at_work(uint32_t pid, uint64_t time) {
  const std::vector<size_t>& lives = by_pid_[pid];
  const auto last = std::ranges::find_if(lives.rbegin(), lives.rend(),
                                         [&](size_t i) { return instances_[i].born <= time; });
  return last != lives.rend() ? *last : instance_at(pid, time);
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
  const uint64_t as_in_labels = info.start_boottime >> 20;
  const auto found = [&](size_t i) {
    if (as_in_labels) instances_[i].start = as_in_labels;
    return i;
  };
  // A pid that is used again where no event tells of it has another start.
  const auto is_other = [&](const Instance& life) {
    return life.start && as_in_labels && !are_same_start(life.start, as_in_labels);
  };
  for (const size_t i : by_pid_[info.pid]) {
    const Instance& life = instances_[i];
    if (life.born <= info.seen && info.seen <= life.died && !is_other(life)) return found(i);
  }
  for (const size_t i : by_pid_[info.pid]) {
    const Instance& life = instances_[i];
    if (start <= life.died && life.died <= info.seen && !is_other(life)) return found(i);
  }
  return found(make_unheard(info.pid, info.parent, !was_used_again(info)));
}

// Is what has this pid now not the process that is told of?
bool Processes::was_used_again(const pk_label& info) {
  const auto now = proc_stat(info.pid);
  return now && info.start_boottime >> 20 &&
         !is_same_start(info.start_boottime >> 20, now->start_boottime >> 20);
}

void Processes::read_image(Instance& instance, Image& image) {
  if (!image.unread) return;
  image.unread = false;
  // Only while it still runs that image: a later exec has other mappings.
  if (&image == &instance.images.back() && instance.died == UINT64_MAX) {
    if (!symbols_.read_proc(image.key, instance.pid)) ++unreadable_;
  }
}

void Processes::add_label(uint64_t label, const pk_label& info, const std::string& exe) {
  note(label, info, exe);
  if (!threads_) return;
  const uint64_t process = process_label(info);
  note(process, info, exe);
  process_labels_[info.pid] = process;
}

void Processes::note(uint64_t label, const pk_label& info, const std::string& exe) {
  const bool fresh = !known_.contains(label);
  Known& k = known_[label];
  if (fresh) k.cgroup = name("");
  if (fresh || info.seen >= k.info.seen) {
    if (fresh || info.exec_id != k.info.exec_id) k.first_comm = name(text_of(info.first_comm));
    k.info = info;
  }
  if (info.flags & PK_LABEL_KTHREAD) return;
  if (k.instance == SIZE_MAX) {
    k.instance = instance_of(info);
    ++instances_[k.instance].labels;
  }
  const Instance& instance = instances_[k.instance];
  int64_t execs = 0;
  for (const Image& image : instance.images)
    if (image.since > instance.born && image.since <= info.seen) ++execs;
  k.first_exec = static_cast<int64_t>(info.exec_id) - execs;
  if (Image* image = image_at(k, info.exec_id); image && image->exe->empty() && !exe.empty())
    image->exe = name(exe);
  if (k.cgroup->empty()) k.cgroup = name(cgroups_.path(info.cgroup, info.pid));
  if (!k.container || k.container->name.empty()) {
    const Container& container = containers_.of(*k.cgroup);
    if (container != Container{}) k.container = std::make_shared<Container>(container);
  }
}

void Processes::meet(uint64_t label) {
  if (known_.contains(label) || is_folded(label)) return;
  const uint32_t number = number_of(label);
  const auto stat = proc_stat(number);
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
    info.pid = proc_process(number);
    const auto leader = proc_stat(info.pid);
    if (!leader) return;
    info.start_boottime = leader->start_boottime;
    comm = leader->comm;
  }
  comm.copy(info.comm, sizeof(info.comm) - 1);
  comm.copy(info.first_comm, sizeof(info.first_comm) - 1);
  info.cgroup = 0;
  note(label, info, proc_exe(number));
}

void Processes::bury() {
  // Where only the first thread has ended, the others are still there.
  std::unordered_set<uint64_t> alive;
  for (const size_t i : to_bury_.instances) {
    const Instance& instance = instances_[i];
    if (instance.died == UINT64_MAX || instance.images.empty()) continue;
    if (has_ended(i)) {
      if (!instance.labels) forget_instance(i);
      continue;
    }
    if (alive.insert(instance.images.back().key).second) dead_.instances.push_back(i);
  }
  for (const uint64_t key : to_bury_.images)
    if (!alive.contains(key)) symbols_.exit(key);
  dead_.images.insert(dead_.images.end(), alive.begin(), alive.end());
  to_bury_ = std::exchange(dead_, {});
  // Programs come and go, too.
  constexpr size_t many = 16384;
  if (names_.size() > std::max(many, 2 * names_needed_)) forget_names();
}

// What is told is the end of its first thread.
bool Processes::has_ended(size_t instance) const {
  const Instance& life = instances_[instance];
  if (is_gone(life.pid)) return true;
  if (life.died == UINT64_MAX) return false;
  const auto now = proc_stat(life.pid);
  if (!now || now->threads < 2) return true;
  // Or has another one that number?
  return life.start ? !is_same_start(life.start, now->start_boottime >> 20)
                    : by_pid_.at(life.pid).back() != instance;
}

bool Processes::has_ended(const Known& known) const {
  return known.instance == SIZE_MAX ? is_gone(known.info.pid) : has_ended(known.instance);
}

void Processes::forget(uint64_t label) {
  const auto it = known_.find(label);
  const Known& known = it->second;
  if (known.instance != SIZE_MAX && --instances_[known.instance].labels == 0 &&
      instances_[known.instance].died != UINT64_MAX)
    forget_instance(known.instance);
  if (const auto process = process_labels_.find(known.info.pid);
      process != process_labels_.end() && process->second == label)
    process_labels_.erase(process);
  known_.erase(it);
}

void Processes::forget_instance(size_t index) {
  Instance& instance = instances_[index];
  if (instance.images.empty()) return;  // it is forgotten already
  const auto lives = by_pid_.find(instance.pid);
  std::erase(lives->second, index);
  if (lives->second.empty()) by_pid_.erase(lives);
  instance = {};
  free_.push_back(index);
}

void Processes::forget_names() {
  std::unordered_set<Name> used;
  for (const Instance& instance : instances_)
    for (const Image& image : instance.images) used.insert({image.exe, image.comm});
  for (const auto& [label, known] : known_) used.insert({known.cgroup, known.first_comm});
  std::erase_if(names_, [&](const std::string& text) { return !used.contains(&text); });
  names_needed_ = names_.size();
}

uint64_t Processes::image_of(uint64_t label, uint32_t exec_id) {
  const auto it = known_.find(label);
  if (it == known_.end()) return 0;
  Image* image = image_at(it->second, exec_id);
  if (!image) return 0;
  read_image(instances_[it->second.instance], *image);
  return image->key;
}

// What the process ran after so many execs; nullptr: nothing is known of it.
Processes::Image* Processes::image_at(const Known& known, uint32_t exec_id) {
  if (known.instance == SIZE_MAX) return nullptr;
  std::vector<Image>& images = instances_[known.instance].images;
  const int64_t last = static_cast<int64_t>(images.size()) - 1;
  const int64_t index =
      std::clamp<int64_t>(static_cast<int64_t>(exec_id) - known.first_exec, 0, last);
  return &images[static_cast<size_t>(index)];
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
  if (const auto* folded = folded_at(label)) return folded->first;
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
  out.first_comm = *k.first_comm;
  out.cgroup = *k.cgroup;
  if (k.container) out.container = *k.container;
  if (k.instance == SIZE_MAX) return out;
  const Image& image = instances_[k.instance].images.back();
  out.exe = *image.exe;
  if (image.since > k.info.seen && !image.comm->empty()) out.comm = out.first_comm = *image.comm;
  return out;
}

bool Processes::is_kernel_thread(uint64_t label) const {
  const auto it = known_.find(label);
  return it != known_.end() && it->second.info.flags & PK_LABEL_KTHREAD;
}

bool Processes::polls(uint64_t label) const {
  return is_kernel_thread(label) && text_of(known_.at(label).info.comm).starts_with("napi/");
}

uint32_t Processes::thread_of(uint64_t label) const {
  if (!threads_ || is_folded(label)) return 0;
  if (!(label & PK_ANY_THREAD)) return number_of(label);
  return is_kernel_thread(label) ? number_of(label) : 0;  // one thread, whatever is asked
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
  if (const auto* folded = folded_at(label)) return folded->second;
  const auto it = known_.find(label);
  return it != known_.end() && it->second.instance != SIZE_MAX &&
         instances_[it->second.instance].selected;
}

}  // namespace pkprof
