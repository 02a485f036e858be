// SPDX-License-Identifier: Apache-2.0
#include "random_profile.h"

#include <algorithm>
#include <random>

namespace pkprof::test {
namespace {

using namespace std::literals;

struct Random : std::mt19937_64 {
  using std::mt19937_64::mt19937_64;
  bool of_hosts = true;
};

std::string random_text(Random& random) {
  constexpr std::string_view bytes = "ab/\\x0f41\x1b\n\"<\xff\xc3\xa9\xe2\x80\xae\0:#"sv;
  std::string text;
  for (size_t length = random() % 12; length > 0; --length) text += bytes[random() % bytes.size()];
  return text;
}

Container random_container(Random& random) {
  if (random() % 3 == 0) return {};
  return {.id = random_text(random),
          .runtime = random_text(random),
          .name = random_text(random),
          .image = random_text(random),
          .pod = random_text(random),
          .pod_namespace = random_text(random),
          .pod_uid = random_text(random)};
}

LabelId random_label(Profile& profile, Random& random) {
  return profile.label({.kind = static_cast<LabelKind>(random() % label_kind_count),
                        .pid = static_cast<uint32_t>(random() % 8),
                        .start_ns = random() % 3,
                        .kthread = random() % 4 == 0,
                        .parent_pid = static_cast<uint32_t>(random()),
                        .comm = random_text(random),
                        .exe = random_text(random),
                        .cgroup = random_text(random),
                        .container = random_container(random),
                        .host = random.of_hosts && random() % 4 == 0 ? random_text(random) : "",
                        .reason = random() % 4 == 0 ? random_text(random) : ""});
}

FrameId random_frame(Profile& profile, Random& random) {
  Frame frame{.kind = static_cast<FrameKind>(random() % 3)};
  if (random() % 3 != 0)
    frame.mapping = profile.mapping({random() % 4, random(), random(), random_text(random), "ab",
                                     random() % 2 != 0 ? random() : no_vaddr});
  if (random() % 3 != 0) frame.address = random();
  frame.function = profile.string(random_text(random));
  frame.file = profile.string(random_text(random));
  if (random() % 2 != 0) frame.line = static_cast<uint32_t>(random());
  return profile.frame(frame);
}

ClientId random_client(Profile& profile, Random& random) {
  if (random() % 2 == 0) return 0;
  Client client{.label = random_label(profile, random),
                .rule = static_cast<ClientRule>(1 + random() % (client_rule_count - 1))};
  for (size_t i = random() % 3; i > 0; --i) client.via.push_back(random_label(profile, random));
  if (random() % 3 == 0) {
    std::vector<FrameId> frames(1 + random() % 5);
    for (FrameId& frame : frames) frame = random_frame(profile, random);
    client.call = profile.stack(frames);
  }
  return profile.client(client);
}

WakeupId random_wakeup(Profile& profile, Random& random) {
  if (random() % 2 == 0) return 0;
  Wakeup wakeup{.label = random_label(profile, random)};
  for (size_t i = random() % 4; i > 0; --i) wakeup.before.push_back(random_label(profile, random));
  std::vector<FrameId> frames(random() % 5);
  for (FrameId& frame : frames) frame = random_frame(profile, random);
  wakeup.stack = profile.stack(frames);
  return profile.wakeup(wakeup);
}

void add_wait(Profile& profile, Random& random) {
  const std::vector<FrameId> frames(1, random_frame(profile, random));
  profile.add({.ran_on = random_label(profile, random),
               .served = random_label(profile, random),
               .source = profile.string(random_text(random)),
               .stack = profile.stack(frames),
               .resource = Resource::wait,
               .wakeup = random_wakeup(profile, random)},
              {.count = random() % 100, .ns = 1 + random() % 1'000'000'000});
}

}  // namespace

Profile random_profile(uint64_t seed, size_t samples, bool of_hosts) {
  Random random(seed);
  random.of_hosts = of_hosts;
  Profile profile;
  profile.meta = {.kernel = random_text(random),
                  .host = random_text(random),
                  .command = random_text(random),
                  .cpus = static_cast<uint32_t>(random() % 512),
                  .start_unix_ns = random() >> 1,
                  .duration_ns = random() >> 12,
                  .all_cpu_ns = random() % 2 == 0 ? random() >> 1 : 0,
                  .paused_ns = random() >> 12,
                  .frequency_hz = random() % 10000,
                  .samples_taken = random(),
                  .samples_lost = random(),
                  .counted_functions = random(),
                  .counted_by = random_text(random),
                  .unwatched_ns = random() >> 12,
                  .degraded = {random_text(random), random_text(random)},
                  .counters = {{random_text(random), random()}, {"", 1}}};
  for (size_t i = 0; i < samples; ++i) {
    std::vector<FrameId> frames(random() % 20);
    for (FrameId& frame : frames) frame = random_frame(profile, random);
    profile.name_thread(random_label(profile, random), static_cast<uint32_t>(random() % 3),
                        random_text(random));
    profile.add({.ran_on = random_label(profile, random),
                 .served = random_label(profile, random),
                 .source = profile.string(random_text(random)),
                 .basis = static_cast<Basis>(random() % basis_count),
                 .stack = profile.stack(frames),
                 .thread = static_cast<uint32_t>(random() % 3),
                 .served_thread = static_cast<uint32_t>(random() % 3),
                 .client = random_client(profile, random)},
                {.count = random() % 100,
                 .ns = random() % 1'000'000'000,
                 .exact_ns = seed % 2 * (random() % 1000),
                 .calls = seed % 3 * (random() % 1000)});
    if (seed % 2 == 0) add_wait(profile, random);
    if (random() % 4 == 0)
      profile.requests[{random_label(profile, random), random_client(profile, random)}] =
          random() >> 1;
    profile.timeline.push_back({.slot = static_cast<uint32_t>(i),
                                .ran_on = random_label(profile, random),
                                .served = random_label(profile, random),
                                .source = profile.string(random_text(random)),
                                .ns = random() % 1'000'000'000});
  }
  profile.meta.slot_ns = random() >> 12;
  return profile;
}

std::vector<std::string> described(const Profile& profile) {
  std::vector<std::string> lines;
  const auto text_of = [](const Label& label) {
    const Container& c = label.container;
    return std::string(to_string(label.kind)) + "|" + std::to_string(label.pid) + "|" +
           std::to_string(label.start_ns) + "|" + std::to_string(label.kthread) + "|" +
           std::to_string(label.parent_pid) + "|" + label.comm + "|" + label.exe + "|" +
           label.cgroup + "|" + label.reason + "|" + c.id + "|" + c.runtime + "|" + c.name + "|" +
           label.host + "|" + c.image + "|" + c.pod + "|" + c.pod_namespace + "|" + c.pod_uid;
  };
  for (const Label& label : profile.labels()) lines.push_back(text_of(label));
  for (const auto& [thread, name] : profile.thread_names())
    lines.push_back(text_of(profile.labels()[thread.first]) + "/" + std::to_string(thread.second) +
                    " " + name);
  for (const auto& [key, value] : profile.samples()) {
    std::string line = text_of(profile.labels()[key.ran_on]) + ">" +
                       text_of(profile.labels()[key.served]) + ">" + profile.text(key.source) +
                       ">" + std::string(to_string(key.basis)) + ">" + std::to_string(key.thread) +
                       ">" + std::to_string(key.served_thread) + ">" +
                       std::string(to_string(key.resource));
    const Wakeup& wakeup = profile.wakeups()[key.wakeup];
    line += ">" + text_of(profile.labels()[wakeup.label]);
    for (const LabelId before : wakeup.before) line += "<" + text_of(profile.labels()[before]);
    for (const FrameId id : profile.frames_of(wakeup.stack))
      line += "," + profile.text(profile.frames()[id].function);
    for (const FrameId id : profile.frames_of(key.stack)) {
      const Frame& frame = profile.frames()[id];
      line += ";" + std::string(to_string(frame.kind)) + "," + std::to_string(frame.address) + "," +
              profile.text(frame.function) + "," + profile.text(frame.file) + "," +
              std::to_string(frame.line);
      if (frame.mapping == no_mapping) continue;
      const Mapping& mapping = profile.mappings()[frame.mapping];
      line += "@" + std::to_string(mapping.start) + "," + std::to_string(mapping.limit) + "," +
              std::to_string(mapping.offset) + "," + mapping.file + "," + mapping.build_id + "," +
              std::to_string(mapping.vaddr);
    }
    for (const uint64_t n : {value.count, value.ns, value.exact_ns, value.calls})
      line += " " + std::to_string(n);
    lines.push_back(std::move(line));
  }
  for (const auto& [slot, ran_on, served, source, ns] : profile.timeline)
    lines.push_back("slot " + std::to_string(slot) + " " + text_of(profile.labels()[ran_on]) + ">" +
                    text_of(profile.labels()[served]) + ">" + profile.text(source) + " " +
                    std::to_string(ns));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace pkprof::test
