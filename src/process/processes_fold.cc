// SPDX-License-Identifier: Apache-2.0
// Where there are too many labels, those of ended processes are their programs' from now on, and
// those of ended threads their processes'.
#include <algorithm>
#include <utility>

#include "process/proc_stat.h"
#include "process/processes.h"

namespace pkprof {
namespace {

// Set in a label that stands for folded processes; the rest is its number among them.
constexpr uint64_t folded_bit = 1ULL << 61;

// Programs whose folded processes have a label of their own; those of all others have one together.
constexpr size_t most_programs = 4096;

}  // namespace

bool Processes::is_folded(uint64_t label) {
  return (label & (PK_OBJECT | PK_ANY_THREAD | folded_bit)) == folded_bit;
}

// Of a process that goes on.
bool Processes::thread_has_ended(uint64_t label, const Known& known) const {
  return threads_ && !(label & PK_ANY_THREAD) && is_gone(known.info.tid);
}

void Processes::fold() {
  std::vector<std::pair<uint64_t, uint64_t>> ended;  // when it was met last, label
  for (const auto& [label, known] : known_)
    if (has_ended(known) || thread_has_ended(label, known))
      ended.emplace_back(known.info.seen, label);
  std::ranges::sort(ended);
  for (const auto& [seen, label] : ended) {
    if (known_.size() <= most_ / 2) break;
    if (folded_.size() >= most_) folded_before_ = std::exchange(folded_, {});
    const Known& known = known_.at(label);
    if (has_ended(known)) {
      folded_[label] = fold_label_of(label);
      ++folded_count_;
    } else {
      folded_[label] = process_label(known.info);
      ++folded_threads_;
    }
    forget(label);
  }
  forget_names();
  // Where most of them live, looking again each time would find little.
  crowd_ = std::max(most_, known_.size() + most_ / 4);
}

// The label for its program, a new one for the first of it.
uint64_t Processes::fold_label_of(uint64_t label) {
  Label one = label_of(label);
  Program program{one.comm, one.exe, one.cgroup, selected(label)};
  if (!programs_.contains(program) && programs_.size() >= most_programs) {
    one = Label{};
    one.kind = LabelKind::process;
    one.comm = "ended";
    program = {one.comm, "", "", program.selected};
  }
  const auto [it, fresh] = programs_.try_emplace(program, folded_bit | folded_labels_.size());
  if (fresh) {
    one.pid = 0;
    one.parent_pid = 0;
    one.start_ns = folded_labels_.size();  // tells those of pid 0 apart
    folded_labels_.emplace_back(one, program.selected);
  }
  return it->second;
}

uint64_t Processes::standing_for(uint64_t label) const {
  for (const Folded* folded : {&folded_, &folded_before_})
    if (const auto it = folded->find(label); it != folded->end() && !known_.contains(label))
      return is_folded(it->second) ? it->second : standing_for(it->second);  // a thread's process
  return label;
}

uint64_t Processes::program_of(uint64_t label) {
  const auto known = known_.find(label);
  if (known == known_.end()) return standing_for(label);
  if (has_ended(known->second)) return fold_label_of(label);
  return thread_has_ended(label, known->second) ? process_label(known->second.info) : label;
}

const std::pair<Label, bool>* Processes::folded_at(uint64_t label) const {
  if (!is_folded(label)) return nullptr;
  const uint64_t number = label & ~folded_bit;
  return number < folded_labels_.size() ? &folded_labels_[number] : nullptr;
}

}  // namespace pkprof
