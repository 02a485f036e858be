// SPDX-License-Identifier: Apache-2.0
// Writes the unit tests' machines as profiles, for tests of what reads profiles: the page, exports.
// Some of them have a timeline, too. And one that is as large as they come: 1,000,000 samples of
// 100,000 stacks.
#include <cstdio>
#include <string>
#include <vector>

#include "clients_fixture.h"
#include "model/pprof/pprof.h"
#include "report_fixture.h"
#include "usage_fixture.h"
#include "waits_fixture.h"

namespace {

using namespace pkprof;

Profile large_machine() {
  constexpr uint32_t stacks = 100'000;
  constexpr uint32_t functions = 5'000;
  Profile profile = test::small_machine();
  std::vector<FrameId> frames;
  frames.reserve(functions);
  for (uint32_t i = 0; i < functions; ++i)
    frames.push_back(profile.frame({.kind = i % 3 ? FrameKind::user : FrameKind::kernel,
                                    .address = 0x1000 + i,
                                    .function = profile.string("function_" + std::to_string(i))}));
  std::vector<LabelId> labels;
  labels.reserve(1'000);
  for (uint32_t i = 0; i < 1'000; ++i)
    labels.push_back(profile.label({.kind = LabelKind::process,
                                    .pid = 10'000 + i,
                                    .start_ns = i,
                                    .comm = "worker-" + std::to_string(i % 50)}));
  const StringId user = profile.string("user");
  const StringId packets = profile.string("softirq:NET_RX");
  uint64_t random = 42;
  const auto next = [&random](uint32_t limit) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>((random >> 33) % limit);
  };
  for (uint32_t i = 0; i < stacks; ++i) {
    // Outer functions are few, inner ones many, as in programs.
    std::vector<FrameId> path(8 + next(24));
    for (size_t depth = 0; depth < path.size(); ++depth)
      path[depth] = frames[next(depth < path.size() / 2 ? functions : 10 + next(40))];
    const LabelId served = labels[next(1'000)];
    const bool own = next(4) != 0;
    profile.add({.ran_on = own ? served : labels[next(1'000)],
                 .served = served,
                 .source = own ? user : packets,
                 .basis = own ? Basis::own : Basis::consumed,
                 .stack = profile.stack(path)},
                {10, 10'000'000, 0, 0});
  }
  profile.meta.cpus = 64;
  profile.meta.duration_ns = 20'000'000'000;
  profile.meta.samples_taken = 1'000'000;
  return profile;
}

// Each row in up to three of six slots, with gaps between them.
Profile timed(Profile profile) {
  profile.meta.slot_ns = 1'000'000'000;
  uint32_t row = 0;
  for (const Profile::Sample& sample : profile.samples()) {
    const uint64_t part = sample.value.ns / 3;
    const auto put = [&profile, &key = sample.key](uint32_t slot, uint64_t ns) {
      profile.timeline.push_back({slot, key.ran_on, key.served, key.source, ns});
    };
    put(row % 6, part);
    put((row + 1) % 6, part);
    put((row + 3) % 6, sample.value.ns - 2 * part);
    ++row;
  }
  return profile;
}

// A store takes none that does not say when it was.
Profile recorded(Profile profile) {
  profile.meta.start_unix_ns = 1'800'000'000'000'000'000;
  return profile;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: fixtures DIRECTORY\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  const auto write = [&](const char* name, const Profile& profile) {
    const auto written = write_profile(profile, directory + "/" + name + ".pb.gz");
    if (!written) std::fprintf(stderr, "fixtures: %s\n", written.error().message.c_str());
    return written.has_value();
  };
  const bool all =
      write("small", test::small_machine()) && write("grouped", test::grouped_machine()) &&
      write("called", test::called_machine()) && write("timed", timed(test::small_machine())) &&
      write("clients", timed(test::clients_machine())) &&
      write("waits", recorded(test::waits_machine())) &&
      write("usage", test::UsageMachine().profile) && write("large", large_machine());
  return all ? 0 : 1;
}
