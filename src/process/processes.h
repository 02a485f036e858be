// SPDX-License-Identifier: Apache-2.0
// Every process that a sample or a consumption met: its label, its descent, and the program
// images it ran, one after the other, with their mappings.
//
// Three sources are brought together: what the kernel side notes of those it meets (identity, comm,
// cgroup, program, and mappings, by time), the sideband (forks, execs, exits, by time), and /proc
// for what was there before. An instance is one life of a pid; a label belongs to the instance that
// lived when it was seen.
//
// There is no end to the processes of a long recording. One that ended and was never met is
// forgotten at once. Of those that were met, so many keep a label of their own; beyond that the
// ones that ended and were met longest ago are folded: all of one program (comm, exe, cgroup) are
// one label with pid 0, which stands for them from then on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "process/cgroups.h"
#include "process/containers.h"
#include "process/sideband.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class Processes {
 public:
  // Some kilobyte each, with their lives, their mappings and their labels in the profile.
  static constexpr size_t most_labels = 16384;

  // With `threads` a label is a thread's, or with PK_ANY_THREAD a process's. `most`: labels.
  explicit Processes(UserSymbols& symbols, bool threads = false, size_t most = most_labels);

  void add_events(const std::vector<ProcessEvent>& events);
  // `exe`: path of the program that it ran then; "" if that is not known.
  void add_label(uint64_t label, const pk_label& info, const std::string& exe = {});
  // A process (or thread) that no sample met, but that turned out to be served: looked up in /proc.
  void meet(uint64_t label);
  // Forgets the mappings of processes that had ended at the last call; call after each time that
  // samples were resolved. Of those that ended since, samples may come yet: the tables are changed
  // before the events are read, and that waits until no CPU can see the old ones.
  void bury();

  // Folding; see above. Processes that live are not folded, however many there are.
  [[nodiscard]] bool is_crowded() const { return known_.size() > crowd_; }
  void fold();
  // The label that stands for this one; itself, if it was not folded.
  [[nodiscard]] uint64_t standing_for(uint64_t label) const;
  // The label that would stand for this one, if it has ended and were folded; itself, if it lives.
  [[nodiscard]] uint64_t program_of(uint64_t label);
  [[nodiscard]] uint64_t folded() const { return folded_count_; }
  // Threads that ended and are counted as their process, which goes on.
  [[nodiscard]] uint64_t folded_threads() const { return folded_threads_; }
  // Lives of pids that something is known of.
  [[nodiscard]] size_t lives() const { return instances_.size() - free_.size(); }

  // What UserSymbols knows the image by that the process had at that exec; 0 for a kernel thread.
  uint64_t image_of(uint64_t label, uint32_t exec_id);
  // The model's label: of a thread, its process's. A number that was never told is a process of
  // that pid without a name.
  [[nodiscard]] Label label_of(uint64_t label) const;
  [[nodiscard]] bool is_kernel_thread(uint64_t label) const;
  // One that polls a network device ("napi/...").
  [[nodiscard]] bool polls(uint64_t label) const;
  // The id and the name of the thread; 0 and "" where labels are processes'.
  [[nodiscard]] uint32_t thread_of(uint64_t label) const;
  [[nodiscard]] std::string thread_name(uint64_t label) const;
  // Marks a process as selected; its children, present and to come, are too.
  void select(uint32_t pid);
  [[nodiscard]] bool selected(uint64_t label) const;
  // Processes whose mappings could not be read: their user frames have no names.
  [[nodiscard]] size_t unreadable() const { return unreadable_; }

 private:
  // Names are kept once: most are of few programs.
  using Name = const std::string*;
  struct Image {
    uint64_t since = 0;  // CLOCK_MONOTONIC
    uint64_t key = 0;    // in UserSymbols
    Name exe;
    Name comm;            // at the exec, "" for what was there before
    bool unread = false;  // its mappings are to be had from /proc
  };
  struct Instance {
    uint32_t pid = 0;
    uint32_t parent = 0;
    uint64_t born = 0;  // 0: before the recording
    uint64_t died = UINT64_MAX;
    uint64_t start = 0;  // of the process, as labels have it; 0: not known
    bool selected = false;
    uint32_t labels = 0;  // that are known and of it
    std::vector<Image> images;
  };
  struct Known {
    pk_label info;
    Name cgroup;
    Name first_comm;                             // since its last exec
    std::shared_ptr<const Container> container;  // nullptr: none
    size_t instance = SIZE_MAX;
    int64_t first_exec = 0;  // exec_id of the instance's first image
  };

  // What folded processes have in common.
  struct Program {
    std::string comm;
    std::string exe;
    std::string cgroup;
    bool selected = false;
    auto operator<=>(const Program&) const = default;
  };
  using Folded = std::unordered_map<uint64_t, uint64_t>;

  void note(uint64_t label, const pk_label& info, const std::string& exe);
  Image* image_at(const Known& known, uint32_t exec_id);
  Name name(std::string text) { return &*names_.insert(std::move(text)).first; }
  Image make_image(uint64_t since, Name exe, std::string comm = {});
  [[nodiscard]] bool has_ended(size_t instance) const;
  [[nodiscard]] bool has_ended(const Known& known) const;
  [[nodiscard]] bool thread_has_ended(uint64_t label, const Known& known) const;
  uint64_t fold_label_of(uint64_t label);
  void forget(uint64_t label);
  void forget_instance(size_t index);
  void forget_names();
  [[nodiscard]] const Known* process_of(const Known& thread) const;
  static uint64_t process_label(const pk_label& info);
  static bool is_folded(uint64_t label);
  // The label for a program's folded processes, and whether they are selected; nullptr: `label` is
  // no such.
  [[nodiscard]] const std::pair<Label, bool>* folded_at(uint64_t label) const;
  size_t instance_of(const pk_label& info);
  size_t instance_at(uint32_t pid, uint64_t time);
  size_t life_at_work(uint32_t pid, uint64_t time);
  static bool was_used_again(const pk_label& info);
  size_t make_unheard(uint32_t pid, uint32_t parent, bool lives);
  size_t make_instance(uint32_t pid, uint32_t parent, uint64_t born);
  void read_image(Instance& instance, Image& image);
  void apply(const ProcessEvent& event);
  void apply_fork(const ProcessEvent& event);
  void apply_exec(const ProcessEvent& event, Instance& instance);
  void apply_map(const ProcessEvent& event, Instance& instance);
  void apply_code(const ProcessEvent& event, Instance& instance);
  void apply_exit(const ProcessEvent& event, size_t index);

  UserSymbols& symbols_;
  const bool threads_;
  Cgroups cgroups_;
  Containers containers_;
  std::unordered_set<std::string> names_;
  size_t names_needed_ = 0;  // when those that nobody needs were forgotten last
  std::vector<Instance> instances_;
  std::vector<size_t> free_;  // of instances_
  std::unordered_map<uint32_t, std::vector<size_t>> by_pid_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<uint32_t, uint64_t> process_labels_;  // with threads: by pid, told last
  // Since the last burial, and what it is that the next one buries.
  struct Dead {
    std::vector<uint64_t> images;
    std::vector<size_t> instances;
  };
  Dead dead_, to_bury_;
  std::unordered_map<uint32_t, uint64_t> exits_;  // of the events at hand: when each pid ended last
  const size_t most_;
  size_t crowd_;  // labels at which to fold again
  // With the label that stands for its processes, for each program, and all of that by number.
  std::map<Program, uint64_t> programs_;
  std::vector<std::pair<Label, bool>> folded_labels_;  // and whether selected
  Folded folded_, folded_before_;                      // of late, and before that
  uint64_t folded_count_ = 0;
  uint64_t folded_threads_ = 0;
  uint64_t next_image_ = 1;
  size_t unreadable_ = 0;
};

}  // namespace pkprof
