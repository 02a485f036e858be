// SPDX-License-Identifier: Apache-2.0
#include "campaign.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "machine.h"

namespace pkprof::overhead {
namespace {

constexpr double kTrialSeconds = 0.2;

Result<double> run_slice(const Workload& workload, Stage& stage, double seconds, double lead,
                         const std::atomic<bool>& stop) {
  // What a profiler does because the load is another one now is not what the load costs.
  if (lead > 0) {
    if (const auto value = workload.slice(stage, lead); !value) return value;
  }
  double sum = 0;
  for (int part = 0; part < workload.parts && !stop; ++part) {
    const auto value = workload.slice(stage, seconds / workload.parts);
    if (!value) return value;
    sum += *value;
  }
  return sum / workload.parts;
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
      const auto value = workload.slice(stage_, kTrialSeconds);
      if (!value) ready = std::unexpected(value.error());
      if (value && *value <= 0) ready = fail("nothing got done in a trial");
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
  info.rounds = plan_.rounds;
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

void Campaign::all_failed(const Variant& variant, int hz, int round, const std::string& why) {
  std::fprintf(stderr, "overhead: %s: %s\n", variant.info.name.c_str(), why.c_str());
  for (const Workload& w : plan_.workloads) {
    emit_(to_line(Failure{{w.info.name, hz, variant.info.name, round}, why}));
  }
}

void Campaign::slices(const Variant& variant, int hz, int round, Profiler* profiler) {
  for (size_t i = 0; i < plan_.workloads.size(); ++i) {
    if (stop_) return;
    const Workload& workload = plan_.workloads[rotated(i, round, plan_.workloads.size())];
    Slice slice{workload.info.name, hz, variant.info.name, round};
    auto value = run_slice(workload, stage_, plan_.seconds, plan_.lead, stop_);
    if (stop_) return;  // Ctrl-C goes to the workload, too
    // A slice under a profiler that was not there any more is none.
    if (profiler != nullptr) {
      if (auto well = profiler->check(); !well) value = std::unexpected(well.error());
    }
    if (value) {
      slice.value = *value;
      emit_(to_line(slice));
    } else {
      const std::string& why = value.error().message;
      std::fprintf(stderr, "overhead: %s: %s\n", workload.info.name.c_str(), why.c_str());
      emit_(to_line(Failure{slice, why}));
    }
  }
}

void Campaign::turn(const Variant& variant, int hz, int round) {
  if (stop_) return;
  auto profiler = Profiler::start(variant, stage_, hz, plan_.settle);
  if (stop_) return;
  if (!profiler) {
    all_failed(variant, hz, round, profiler.error().message);
    return;
  }
  slices(variant, hz, round, &*profiler);
  if (stop_) return;
  if (auto ended = profiler->stop(); !ended) {
    std::fprintf(stderr, "overhead: %s: %s\n", variant.info.name.c_str(),
                 ended.error().message.c_str());
  }
}

void Campaign::run() {
  const Variant plain = all_variants().front();
  for (int round = 1; round <= plan_.rounds && !stop_; ++round) {
    for (const int hz : plan_.frequencies) {
      if (stop_) return;
      std::fprintf(stderr, "round %d of %d, %d Hz\n", round, plan_.rounds, hz);
      slices(plain, 0, round, nullptr);
      for (size_t i = 0; i < plan_.variants.size(); ++i) {
        turn(plan_.variants[rotated(i, round, plan_.variants.size())], hz, round);
      }
    }
  }
  slices(plain, 0, plan_.rounds, nullptr);
}

}  // namespace pkprof::overhead
