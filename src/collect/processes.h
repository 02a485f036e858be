// SPDX-License-Identifier: Apache-2.0
// Every process that a sample or a consumption met: its label, its descent, and the program
// images it ran, one after the other, with their mappings.
//
// Three sources are brought together: labels noted by the kernel side (identity, comm, cgroup),
// the sideband (forks, execs, mappings, exits, by time), and /proc for what was there before. An
// instance is one life of a pid; a label belongs to the instance that lived when it was seen.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collect/cgroups.h"
#include "collect/containers.h"
#include "collect/sideband.h"
#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class Processes {
 public:
  // With `threads` a label is a thread's, or with PK_ANY_THREAD a process's.
  explicit Processes(UserSymbols& symbols, bool threads = false);

  void add_events(const std::vector<ProcessEvent>& events);
  void add_label(uint64_t label, const pk_label& info);
  // A process (or thread) that no sample met, but that turned out to be served: looked up in /proc.
  void meet(uint64_t label);
  // Forgets the mappings of processes that had ended at the last call; call after each time that
  // samples were resolved. Of those that ended since, samples may come yet: the tables are changed
  // before the events are read, and that waits until no CPU can see the old ones.
  void bury();

  // What UserSymbols knows the image by that the process had at that exec; 0 for a kernel thread.
  uint64_t image_of(uint64_t label, uint32_t exec_id);
  // The model's label: of a thread, its process's. A number that was never told is a process of
  // that pid without a name.
  [[nodiscard]] Label label_of(uint64_t label) const;
  // The id and the name of the thread; 0 and "" where labels are processes'.
  [[nodiscard]] uint32_t thread_of(uint64_t label) const;
  [[nodiscard]] std::string thread_name(uint64_t label) const;
  // Marks a process as selected; its children, present and to come, are too.
  void select(uint32_t pid);
  [[nodiscard]] bool selected(uint64_t label) const;
  // Processes whose mappings could not be read: their user frames have no names.
  [[nodiscard]] size_t unreadable() const { return unreadable_; }

 private:
  struct Image {
    uint64_t since = 0;  // CLOCK_MONOTONIC
    uint64_t key = 0;    // in UserSymbols
    std::string exe;
    std::string comm;     // at the exec, "" for what was there before
    bool unread = false;  // its mappings are to be had from /proc
  };
  struct Instance {
    uint32_t pid = 0;
    uint32_t parent = 0;
    uint64_t born = 0;  // 0: before the recording
    uint64_t died = UINT64_MAX;
    bool selected = false;
    std::vector<Image> images;
  };
  struct Known {
    pk_label info;
    std::string exe;
    std::string cgroup;
    Container container;
    size_t instance = SIZE_MAX;
    int64_t first_exec = 0;  // exec_id of the instance's first image
  };

  void note(uint64_t label, const pk_label& info);
  [[nodiscard]] const Known* process_of(const Known& thread) const;
  size_t instance_of(const pk_label& info);
  size_t instance_at(uint32_t pid, uint64_t time);
  size_t make_instance(uint32_t pid, uint32_t parent, uint64_t born);
  void read_image(Instance& instance, Image& image);
  void apply(const ProcessEvent& event);
  void apply_fork(const ProcessEvent& event);

  UserSymbols& symbols_;
  const bool threads_;
  Cgroups cgroups_;
  Containers containers_;
  std::vector<Instance> instances_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_pid_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<uint32_t, uint64_t> process_labels_;  // with threads: by pid, told last
  std::vector<uint64_t> dead_images_;                      // since the last burial
  std::vector<uint64_t> to_bury_;
  uint64_t next_image_ = 1;
  size_t unreadable_ = 0;
};

}  // namespace pkprof
