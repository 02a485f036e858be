// SPDX-License-Identifier: Apache-2.0
// Writes a profile as a busy machine of a few hundred processes would leave it: samples are taken
// one by one, most on hot paths, some anywhere, so that few stacks have most of the samples and
// most stacks have few.
//
//   make_profile OUT [SAMPLES]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "model/pprof/pprof.h"

namespace {

using namespace pkprof;
using Clock = std::chrono::steady_clock;

constexpr uint64_t period_ns = 1'003'009;  // 997 Hz
constexpr size_t processes = 300;
constexpr size_t binaries = 60;
constexpr size_t functions_per_binary = 400;
constexpr size_t kernel_functions = 6000;
constexpr size_t stacks_per_process = 60;
constexpr size_t kernel_stacks = 1500;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Generator {
 public:
  Generator() {
    make_kernel();
    make_binaries();
    for (size_t i = 0; i < processes; ++i) make_process(static_cast<uint32_t>(i));
    profile_.meta = {.kernel = "6.18.0-bench", .cpus = 16, .frequency_hz = 997};
  }

  void take(size_t samples) {
    for (size_t i = 0; i < samples; ++i) {
      const size_t ran_on = skewed(processes);
      const size_t served = random_() % 10 < 3 ? skewed(processes) : ran_on;
      SampleKey key{.ran_on = labels_[ran_on], .served = labels_[served]};
      if (ran_on != served) {
        key.source = sources_[skewed(sources_.size())];
        key.basis = Basis::consumed;
        key.stack = asynchronous_[skewed(asynchronous_.size())];
      } else {
        const size_t stack = skewed(stacks_per_process);
        key.source = stack % 2 == 0 ? user_ : sources_[stack % sources_.size()];
        key.stack = stacks_[ran_on * stacks_per_process + stack];
      }
      profile_.add(key, {.count = 1, .ns = period_ns});
    }
    profile_.meta.samples_taken = samples;
    profile_.meta.duration_ns = samples * period_ns / profile_.meta.cpus;
  }

  Profile& profile() { return profile_; }

 private:
  // 0 most often, n-1 hardly ever.
  size_t skewed(size_t n) {
    const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<size_t>(std::pow(u, 3) * static_cast<double>(n));
  }

  void make_kernel() {
    const MappingId kernel =
        profile_.mapping({0xffffffff81000000, 0xffffffff83000000, 0, "[kernel.kallsyms]", "00ff"});
    for (size_t i = 0; i < kernel_functions; ++i)
      kernel_frames_.push_back(
          profile_.frame({FrameKind::kernel, kernel, 0xffffffff81000000 + i * 64,
                          profile_.string("kernel_function_number_" + std::to_string(i)), 0, 0}));
    user_ = profile_.string("user");
    for (const char* source : {"softirq:NET_RX", "softirq:BLOCK", "work:wb_workfn", "irq:nvme0q1",
                               "syscall:read", "syscall:write", "syscall:epoll_wait"})
      sources_.push_back(profile_.string(source));
    for (size_t i = 0; i < kernel_stacks; ++i) {
      std::vector<FrameId> frames = kernel_path(8 + random_() % 20);
      frames.push_back(
          profile_.frame({.kind = FrameKind::pseudo, .function = sources_[i % sources_.size()]}));
      asynchronous_.push_back(profile_.stack(frames));
    }
  }

  void make_binaries() {
    for (size_t b = 0; b < binaries; ++b) {
      const uint64_t start = 0x550000000000 + (b << 32);
      const MappingId mapping =
          profile_.mapping({start, start + 0x1000000, 0, "/usr/lib/program-" + std::to_string(b),
                            "c0ffee" + std::to_string(b)});
      for (size_t f = 0; f < functions_per_binary; ++f)
        user_frames_.push_back(
            profile_.frame({FrameKind::user, mapping, start + f * 256,
                            profile_.string("ns::Class" + std::to_string(b) +
                                            "<int, std::string>::method_" + std::to_string(f)),
                            profile_.string("src/file" + std::to_string(f / 20) + ".cc"),
                            static_cast<uint32_t>(f)}));
    }
  }

  // Neighbours in a call path are neighbours in the table, so that paths share their beginnings.
  std::vector<FrameId> kernel_path(size_t depth) {
    std::vector<FrameId> frames;
    size_t at = skewed(kernel_functions);
    for (size_t i = 0; i < depth; ++i) {
      frames.push_back(kernel_frames_[at]);
      at = at * 3 / 4 + random_() % 3;
    }
    return frames;
  }

  void make_process(uint32_t i) {
    labels_.push_back(profile_.label({.kind = LabelKind::process,
                                      .pid = 1000 + i,
                                      .start_ns = 1'000'000'000ULL * i,
                                      .parent_pid = 1,
                                      .comm = "process-" + std::to_string(i),
                                      .exe = "/usr/lib/program-" + std::to_string(i % binaries),
                                      .cgroup = "/system.slice/s" + std::to_string(i % 40)}));
    const FrameId* const functions = &user_frames_[(i % binaries) * functions_per_binary];
    for (size_t s = 0; s < stacks_per_process; ++s) {
      std::vector<FrameId> frames;
      if (s % 2 != 0) {
        frames = kernel_path(4 + random_() % 12);
        frames.push_back(
            profile_.frame({.kind = FrameKind::pseudo, .function = sources_[s % sources_.size()]}));
      }
      size_t at = skewed(functions_per_binary);
      for (size_t depth = 6 + random_() % 24; depth > 0; --depth) {
        frames.push_back(functions[at]);
        at = at * 4 / 5 + random_() % 2;
      }
      stacks_.push_back(profile_.stack(frames));
    }
  }

  std::mt19937_64 random_{1};
  Profile profile_;
  StringId user_ = 0;
  std::vector<StringId> sources_;
  std::vector<FrameId> kernel_frames_;
  std::vector<FrameId> user_frames_;
  std::vector<LabelId> labels_;
  std::vector<StackId> stacks_;
  std::vector<StackId> asynchronous_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: make_profile OUT [SAMPLES]\n");
    return 2;
  }
  const size_t samples = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  Generator generator;
  auto start = Clock::now();
  generator.take(samples);
  std::fprintf(stderr, "%zu samples taken, %zu kept apart, %zu stacks: %.0f ms\n", samples,
               generator.profile().samples().size(), generator.profile().stack_count(),
               milliseconds_since(start));
  start = Clock::now();
  if (const Result<> written = write_profile(generator.profile(), argv[1]); !written) {
    std::fprintf(stderr, "make_profile: %s\n", written.error().message.c_str());
    return 125;
  }
  std::fprintf(stderr, "written: %.0f ms\n", milliseconds_since(start));
}
