// SPDX-License-Identifier: Apache-2.0
#include "campaign.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "awake.h"
#include "machine.h"

namespace pkprof::overhead {
namespace {

constexpr double kTrialSeconds = 0.5;
// After a profiler has ended, until what it leaves to the kernel to clear away is gone, too.
constexpr double kGoneSeconds = 0.3;
// The same after one was turned on or off: its hooks are in the kernel's code, or out of it.
constexpr double kTurnedSeconds = 0.03;
// Of a slice of a profiler that was started for it: to get there takes seconds in any case.
constexpr double kSliceOfStartSeconds = 1;

// None where this machine has none, which was told when the campaign began.
std::optional<Awake> awake_for(const Workload& workload) {
  if (workload.halts) return {};
  auto awake = Awake::hold();
  if (!awake) return {};
  return std::move(*awake);
}

// Index `turn` of `size` things in round `round`, where each round begins with the next.
size_t rotated(size_t turn, int round, size_t size) {
  return (turn + static_cast<size_t>(round)) % size;
}

std::string describe_tool(const std::string& name) {
  const std::string path = find_program(name);
  const std::string version =
      version_of(path, name == "nginx" || name == "wrk" ? "-v" : "--version");
  return version.empty() ? name : version;
}

}  // namespace

void Campaign::skip(const std::string& name, const std::string& why) {
  std::fprintf(stderr, "overhead: %s is skipped: %s\n", name.c_str(), why.c_str());
  emit_(to_line(Skip{name, why}));
}

void Campaign::keep_usable_workloads() {
  std::vector<Workload> usable;
  for (Workload& workload : plan_.workloads) {
    if (stop_) return;
    Result<> ready = workload.prepare(stage_);
    if (ready) {
      // A trial, which warms the caches, too.
      auto load = workload.start(stage_);
      if (!load) {
        ready = std::unexpected(load.error());
      } else if (auto value = load->measure(kTrialSeconds, stop_); !value) {
        ready = std::unexpected(value.error());
      }
    }
    if (ready) {
      usable.push_back(std::move(workload));
    } else {
      skip(workload.info.name, ready.error().message);
    }
  }
  plan_.workloads = std::move(usable);
}

void Campaign::keep_usable_variants() {
  std::vector<Variant> usable;
  for (Variant& variant : plan_.variants) {
    if (stop_) return;
    if (variant.info.name == kPlain) continue;
    if (!variant.needs.empty() && find_program(variant.needs).empty()) {
      skip(variant.info.name, variant.needs + " is not installed");
      continue;
    }
    auto profiler = Profiler::start(variant, stage_, plan_.frequencies.front(), 0.2);
    Result<> ended;
    if (profiler) ended = profiler->stop();
    if (profiler && ended) {
      usable.push_back(std::move(variant));
    } else {
      skip(variant.info.name, (profiler ? ended.error() : profiler.error()).message);
    }
  }
  plan_.variants = std::move(usable);
}

Result<> Campaign::prepare() {
  RunInfo info;
  describe_machine(info);
  info.seconds = plan_.seconds;
  info.lead = plan_.lead;
  info.settle = plan_.settle;
  info.rounds = plan_.rounds;
  info.turns = plan_.turns;
  const auto awake = Awake::hold();
  info.awake = awake.has_value();
  if (!awake) std::fprintf(stderr, "overhead: %s\n", awake.error().message.c_str());
  for (const Workload& w : plan_.workloads) info.workloads.push_back(w.info);
  info.variants.push_back(all_variants().front().info);
  info.tools.push_back(version_of(stage_.bin("pkprof"), "--version"));
  for (const Variant& v : plan_.variants) {
    if (v.info.name != kPlain) info.variants.push_back(v.info);
    if (!v.needs.empty() && !find_program(v.needs).empty()) {
      info.tools.push_back(describe_tool(v.needs));
    }
  }
  emit_(to_line(info));
  std::fprintf(stderr, "trying each workload and profiler\n");
  keep_usable_workloads();
  keep_usable_variants();
  if (stop_) return fail("interrupted");
  if (plan_.workloads.empty()) return fail("no workload can be run here");
  if (plan_.variants.empty()) return fail("no profiler can be run here");
  return {};
}

void Campaign::failed(const Slice& slice, const std::string& why) {
  std::fprintf(stderr, "overhead: %s with %s: %s\n", slice.workload.c_str(), slice.variant.c_str(),
               why.c_str());
  emit_(to_line(Failure{slice, why}));
}

bool Campaign::plain_slice(Load& load, Slice slice, double seconds) {
  slice.variant = kPlain;
  const auto value = load.measure(seconds, stop_);
  if (stop_) return false;  // Ctrl-C goes to the load, too
  if (!value) {
    failed(slice, value.error().message);
    return false;
  }
  slice.value = *value;
  emit_(to_line(slice));
  return true;
}

// A profiler that fails fails alone.
std::optional<Profiler> Campaign::start(const Variant& variant, const Slice& slice) {
  if (hang_.contains({slice.workload, variant.info.name})) {
    failed(slice, "it did not end before");
    return {};
  }
  auto profiler = Profiler::start(variant, stage_, slice.hz, plan_.settle);
  if (profiler) return std::move(*profiler);
  if (!stop_) failed(slice, profiler.error().message);
  return {};
}

Result<> Campaign::end(Profiler& profiler, const Slice& slice) {
  auto ended = profiler.stop();
  if (!ended && !stop_) hang_.emplace(slice.workload, slice.variant);
  return ended;
}

bool Campaign::turn(Load& load, Resident& resident, Slice slice) {
  const auto give_up = [&](const std::string& why) {
    if (!stop_) failed(slice, why);
    resident.profiler.reset();
    return !stop_;
  };
  if (auto on = resident.profiler->turn(true); !on) return give_up(on.error().message);
  Load::pass(kTurnedSeconds, stop_);
  const auto value = load.measure(plan_.seconds, stop_);
  // A slice under a profiler that was not there any more is none.
  auto off = resident.profiler->check();
  if (off) off = resident.profiler->turn(false);
  if (stop_) return false;
  if (!value) {
    failed(slice, value.error().message);
    return false;
  }
  if (!off) return give_up(off.error().message);
  slice.value = *value;
  emit_(to_line(slice));
  Load::pass(kTurnedSeconds, stop_);
  return plain_slice(load, slice, plan_.seconds);
}

bool Campaign::by_switching(Load& load, Slice slice, const Variants& variants) {
  std::vector<Resident> residents;
  for (const Variant* variant : variants) {
    if (stop_) return false;
    slice.variant = variant->info.name;
    Resident resident{variant, start(*variant, slice)};
    if (!resident.profiler) continue;
    if (auto off = resident.profiler->turn(false); !off) {
      failed(slice, off.error().message);
    } else {
      residents.push_back(std::move(resident));
    }
  }
  bool well = plain_slice(load, slice, plan_.seconds);
  for (slice.turn = 1; well && slice.turn <= plan_.turns; ++slice.turn) {
    for (size_t i = 0; well && i < residents.size(); ++i) {
      Resident& resident = residents[rotated(i, slice.turn + slice.round, residents.size())];
      slice.variant = resident.variant->info.name;
      if (resident.profiler) well = turn(load, resident, slice);
    }
  }
  for (Resident& resident : residents) {
    if (!resident.profiler) continue;
    slice.variant = resident.variant->info.name;
    if (auto ended = end(*resident.profiler, slice); !ended && !stop_)
      failed(slice, ended.error().message);
  }
  return well;
}

bool Campaign::turn_of_its_own(Load& load, const Variant& variant, Slice slice) {
  auto profiler = start(variant, slice);
  if (!profiler) return !stop_;
  const auto value = load.measure(kSliceOfStartSeconds, stop_);
  if (stop_) return false;
  const auto ended = end(*profiler, slice);
  if (!value || !ended) {
    failed(slice, (value ? ended.error() : value.error()).message);
    if (!value) return false;
  } else {
    slice.value = *value;
    emit_(to_line(slice));
  }
  Load::pass(kGoneSeconds, stop_);
  return plain_slice(load, slice, kSliceOfStartSeconds);
}

bool Campaign::by_starting(Load& load, Slice slice, const Variants& variants) {
  bool well = plain_slice(load, slice, kSliceOfStartSeconds);
  for (slice.turn = 1; well && slice.turn <= plan_.starts; ++slice.turn) {
    for (size_t i = 0; well && i < variants.size(); ++i) {
      const Variant& variant = *variants[rotated(i, slice.turn + slice.round, variants.size())];
      slice.variant = variant.info.name;
      well = turn_of_its_own(load, variant, slice);
    }
  }
  return well;
}

void Campaign::under_load(const Workload& workload, int hz, int round) {
  const Slice slice{workload.info.name, hz, kPlain, round};
  const auto awake = awake_for(workload);
  auto load = workload.start(stage_);
  if (!load) {
    if (!stop_) failed(slice, load.error().message);
    return;
  }
  Load::pass(plan_.lead, stop_);
  Variants stay;
  Variants come_and_go;
  for (const Variant& variant : plan_.variants)
    (workload.maps && variant.hears_of_maps ? come_and_go : stay).push_back(&variant);
  const bool well = stay.empty() || by_switching(*load, slice, stay);
  if (well && !come_and_go.empty()) static_cast<void>(by_starting(*load, slice, come_and_go));
}

void Campaign::run() {
  for (int round = 1; round <= plan_.rounds; ++round) {
    for (const int hz : plan_.frequencies) {
      std::fprintf(stderr, "round %d of %d, %d Hz\n", round, plan_.rounds, hz);
      for (const Workload& workload : plan_.workloads) {
        if (stop_) return;
        under_load(workload, hz, round);
      }
    }
  }
}

}  // namespace pkprof::overhead
