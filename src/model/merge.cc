// SPDX-License-Identifier: Apache-2.0
#include "model/merge.h"

#include <algorithm>

namespace pkprof {
namespace {

void merge_meta(Meta& before, const Meta& later) {
  const bool is_product = before.all_cpu_ns == 0 && later.all_cpu_ns == 0;
  const uint64_t all_cpu_ns = is_product ? 0 : before.cpu_ns() + later.cpu_ns();
  before.frequency_hz = later.frequency_hz;
  if (before.command.empty()) before.command = later.command;
  before.start_unix_ns = std::min(before.start_unix_ns, later.start_unix_ns);
  before.all_cpu_ns = all_cpu_ns;
  before.duration_ns += later.duration_ns;
  before.paused_ns += later.paused_ns;
  before.samples_taken += later.samples_taken;
  before.samples_lost += later.samples_lost;
  before.cost_kernel_ns += later.cost_kernel_ns;
  before.cost_user_ns += later.cost_user_ns;
  before.unwatched_ns += later.unwatched_ns;
  before.counted_functions = std::max(before.counted_functions, later.counted_functions);
  if (before.counted_by.empty()) before.counted_by = later.counted_by;
  for (const std::string& sentence : later.degraded)
    if (std::ranges::find(before.degraded, sentence) == before.degraded.end())
      before.degraded.push_back(sentence);
  for (const auto& [name, value] : later.counters) before.counters[name] += value;
  for (const auto& [end, samples] : later.user_stacks) before.user_stacks[end] += samples;
}

// Numbers of the later profile's tables in the other's.
struct Numbers {
  std::vector<LabelId> labels;
  std::vector<ClientId> clients;
  std::vector<WakeupId> wakeups;
  std::vector<MappingId> mappings;
  std::vector<FrameId> frames;
  std::vector<StackId> stacks;
};

Numbers add_tables(Profile& to, const Profile& from, const NameOfFrame& name_of) {
  Numbers numbers;
  for (const Label& label : from.labels()) numbers.labels.push_back(to.label(label));
  for (const Mapping& mapping : from.mappings()) numbers.mappings.push_back(to.mapping(mapping));
  for (Frame frame : from.frames()) {
    const auto name = name_of ? name_of(frame) : std::nullopt;
    if (frame.mapping != no_mapping) frame.mapping = numbers.mappings[frame.mapping];
    frame.function = to.string(name ? *name : from.text(frame.function));
    frame.file = to.string(from.text(frame.file));
    numbers.frames.push_back(to.frame(frame));
  }
  std::vector<FrameId> frames;
  for (StackId id = 0; id < from.stack_count(); ++id) {
    frames.clear();
    for (const FrameId frame : from.frames_of(id)) frames.push_back(numbers.frames[frame]);
    numbers.stacks.push_back(to.stack(frames));
  }
  for (Client client : from.clients()) {
    client.label = numbers.labels[client.label];
    for (LabelId& via : client.via) via = numbers.labels[via];
    client.call = numbers.stacks[client.call];
    numbers.clients.push_back(to.client(client));
  }
  for (Wakeup wakeup : from.wakeups()) {
    wakeup.label = numbers.labels[wakeup.label];
    for (LabelId& before : wakeup.before) before = numbers.labels[before];
    wakeup.stack = numbers.stacks[wakeup.stack];
    numbers.wakeups.push_back(to.wakeup(wakeup));
  }
  return numbers;
}

using Wanted = std::function<bool(const SampleKey& key)>;

void add_samples(Profile& to, const Profile& from, const Numbers& numbers,
                 const NewKey& new_key = {}, const Wanted& wanted = {}) {
  for (const Profile::Sample& sample : from.samples()) {
    if (wanted && !wanted(sample.key)) continue;
    SampleKey key = sample.key;
    key.ran_on = numbers.labels[key.ran_on];
    key.served = numbers.labels[key.served];
    key.source = to.string(from.text(key.source));
    key.stack = numbers.stacks[key.stack];
    key.client = numbers.clients[key.client];
    key.wakeup = numbers.wakeups[key.wakeup];
    if (new_key) new_key(to, key);
    to.add(key, sample.value);
  }
  for (const auto& [thread, name] : from.thread_names())
    to.name_thread(numbers.labels[thread.first], thread.second, name);
  for (const auto& [pair, count] : from.requests)
    to.requests[{numbers.labels[pair.first], numbers.clients[pair.second]}] += count;
}

}  // namespace

Result<> merge(Profile& before, const Profile& later) {
  if (before.meta.cpus != later.meta.cpus || before.meta.host != later.meta.host ||
      before.meta.kernel != later.meta.kernel || before.meta.measured != later.meta.measured)
    return fail("they are not of one machine as it was: " + before.meta.host + ", " +
                before.meta.kernel + ", " + std::to_string(before.meta.cpus) + " CPUs; " +
                later.meta.host + ", " + later.meta.kernel + ", " +
                std::to_string(later.meta.cpus) + " CPUs");
  const Numbers numbers = add_tables(before, later, {});
  // Two recordings with a time between them of which nothing is known.
  before.timeline.clear();
  before.meta.slot_ns = 0;
  add_samples(before, later, numbers);
  merge_meta(before.meta, later.meta);
  return {};
}

namespace {

Profile copy(const Profile& profile, const NameOfFrame& name_of, const NewKey& new_key,
             const Wanted& wanted = {}) {
  Profile to;
  to.meta = profile.meta;
  const Numbers numbers = add_tables(to, profile, name_of);
  add_samples(to, profile, numbers, new_key, wanted);
  for (TimelineCell cell : profile.timeline) {
    cell.ran_on = numbers.labels[cell.ran_on];
    cell.served = numbers.labels[cell.served];
    cell.source = to.string(profile.text(cell.source));
    to.timeline.push_back(cell);
  }
  std::ranges::sort(to.timeline);
  return to;
}

}  // namespace

Profile renamed(const Profile& profile, const NameOfFrame& name_of) {
  return copy(profile, name_of, {});
}

Profile rekeyed(const Profile& profile, const NewKey& new_key) {
  return copy(profile, {}, new_key);
}

Resource resource_of(const Profile& profile) {
  if (profile.samples().empty() || has_resource(profile, Resource::cpu)) return Resource::cpu;
  return profile.samples().front().key.resource;
}

bool has_resource(const Profile& profile, Resource resource) {
  return std::ranges::any_of(profile.samples(), [resource](const Profile::Sample& sample) {
    return sample.key.resource == resource;
  });
}

Profile of_resource(Profile profile, Resource resource) {
  const bool others = std::ranges::any_of(
      profile.samples(),
      [resource](const Profile::Sample& sample) { return sample.key.resource != resource; });
  if (!others) return profile;
  Profile only =
      copy(profile, {}, {}, [resource](const SampleKey& key) { return key.resource == resource; });
  if (resource != Resource::cpu) only.timeline.clear();  // it is of CPU time
  return only;
}

}  // namespace pkprof
