// SPDX-License-Identifier: Apache-2.0
// What the sideband tells of processes: forks, execs, mappings, exits, in the order of time.
#include <utility>

#include "process/processes.h"

namespace pkprof {
namespace {

// Images of one process that are remembered: of those before, no sample is to come.
constexpr size_t most_images = 16;

}  // namespace

void Processes::add_events(const std::vector<ProcessEvent>& events) {
  exits_.clear();
  for (const ProcessEvent& e : events)
    if (e.kind == ProcessEvent::Kind::exit) exits_[e.pid] = e.time;
  for (const ProcessEvent& e : events) apply(e);
}

// Where another thread than the first one forks, execs or maps, that one's end may be told before.
void Processes::apply(const ProcessEvent& e) {
  switch (e.kind) {
    case ProcessEvent::Kind::fork:
      apply_fork(e);
      break;
    case ProcessEvent::Kind::exec:
      apply_exec(e, instances_[life_at_work(e.pid, e.time)]);
      break;
    case ProcessEvent::Kind::map:
      apply_map(e, instances_[life_at_work(e.pid, e.time)]);
      break;
    case ProcessEvent::Kind::code:
      apply_code(e, instances_[life_at_work(e.pid, e.time)]);
      break;
    case ProcessEvent::Kind::exit:
      apply_exit(e, instance_at(e.pid, e.time));
      break;
  }
}

void Processes::apply_fork(const ProcessEvent& e) {
  if (e.parent == e.pid) return;
  const size_t parent = life_at_work(e.parent, e.time);
  const size_t child = make_instance(e.pid, e.parent, e.time);
  Instance& from = instances_[parent];
  Instance& to = instances_[child];
  to.selected = from.selected;
  read_image(from, from.images.back());
  to.images.push_back(make_image(e.time, from.images.back().exe));
  symbols_.fork(from.images.back().key, to.images.back().key);
}

void Processes::apply_exec(const ProcessEvent& e, Instance& instance) {
  instance.died = UINT64_MAX;
  const uint64_t before = instance.images.back().key;
  dead_.images.push_back(before);
  if (instance.images.size() == most_images)  // note() finds the others' places anew
    instance.images.erase(instance.images.begin());
  instance.images.push_back(make_image(e.time, name(""), e.comm));
  symbols_.fork(before, instance.images.back().key);  // it is in the same root
  symbols_.exec(instance.images.back().key);
  const auto exit = exits_.find(e.pid);
  symbols_.set_pid(instance.images.back().key, e.pid,
                   exit != exits_.end() && exit->second > e.time);
}

void Processes::apply_map(const ProcessEvent& e, Instance& instance) {
  Image& image = instance.images.back();
  read_image(instance, image);
  if (image.exe->empty() && e.map.file.starts_with("/")) image.exe = name(e.map.file);
  symbols_.add_map(image.key, e.map);
}

void Processes::apply_code(const ProcessEvent& e, Instance& instance) {
  Image& image = instance.images.back();
  read_image(instance, image);
  symbols_.add_map(image.key, e.map);
  if (instance.died != UINT64_MAX) dead_.images.push_back(image.key);
}

void Processes::apply_exit(const ProcessEvent& e, size_t index) {
  Instance& instance = instances_[index];
  instance.died = e.time;
  dead_.images.push_back(instance.images.back().key);
  dead_.instances.push_back(index);
}

}  // namespace pkprof
