// SPDX-License-Identifier: Apache-2.0
#include "import/perf_script.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "import/charged.h"
#include "import/perf_sample.h"

namespace pkprof {
namespace {

constexpr size_t longest_line = size_t{1} << 16;
constexpr size_t deepest_stack = 1024;
constexpr uint64_t kernel_half = uint64_t{1} << 63;

bool is_clock(std::string_view event) {
  return event == "cpu-clock" || event == "task-clock";
}

// "[kernel.kallsyms]", "[nf_tables]", "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko"
bool is_kernel(const PerfFrame& frame) {
  return frame.address >= kernel_half || frame.file.ends_with(".ko") ||
         frame.file == "[kernel.kallsyms]" || frame.file == "[kernel]" ||
         frame.file.starts_with("[kernel.kallsyms]");
}

class PerfScript {
 public:
  Result<Profile> run(std::istream& in) {
    std::string line;
    while (read_line(in, line)) {
      ++lines_;
      if (line.size() > longest_line)
        return fail("line " + std::to_string(lines_) + " is longer than " +
                    std::to_string(longest_line) + " bytes: this is not what perf script prints");
      take(line);
    }
    add_sample();
    if (sums_overflow_) return fail("its times add up to more than can be");
    if (!samples_)
      return fail("there is no sample in it: it is to be what `perf script` prints, with times");
    finish();
    return std::move(profile_);
  }

 private:
  // Reads no more than a little beyond what a line may be.
  static bool read_line(std::istream& in, std::string& line) {
    line.clear();
    for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
      if (c == '\n') return true;
      line += static_cast<char>(c);
      if (line.size() > longest_line) return true;
    }
    return !line.empty();
  }

  void take(const std::string& line) {
    if (line.starts_with('#')) {
      take_fact(line);
    } else if (line.find_first_not_of(" \t\r") == std::string::npos) {
      add_sample();
    } else if (sample_) {
      // Not a new sample before its stack has ended: a frame's name may look like anything.
      if (auto frame = parse_perf_frame(line)) {
        if (sample_->frames.size() < deepest_stack)
          sample_->frames.push_back(std::move(*frame));
        else
          ++cut_;
      } else {
        add_sample();
        begin(line);
      }
    } else {
      begin(line);
    }
  }

  void begin(const std::string& line) {
    sample_ = parse_perf_header(line);
    if (!sample_) ++strange_;
  }

  // Of --header.
  void take_fact(const std::string& line) {
    const auto value = [&line](std::string_view name) -> std::string {
      if (!line.starts_with(name)) return "";
      const size_t colon = line.find(" : ", name.size() - 1);
      return colon == std::string::npos ? "" : line.substr(colon + 3);
    };
    if (std::string v = value("# hostname"); !v.empty()) profile_.meta.host = std::move(v);
    if (std::string v = value("# os release"); !v.empty()) profile_.meta.kernel = std::move(v);
    if (std::string v = value("# cmdline"); !v.empty()) profile_.meta.command = std::move(v);
    if (const std::string v = value("# nrcpus online"); !v.empty() && v.size() < 6)
      cpus_ = static_cast<uint32_t>(std::min(std::strtoul(v.c_str(), nullptr, 10), 65536UL));
  }

  LabelId label_of(const PerfSample& sample) {
    if (sample.pid == 0) return profile_.label({.kind = LabelKind::idle});
    return profile_.label({.kind = LabelKind::process,
                           .pid = sample.pid,
                           .start_ns = 1,
                           .kthread = !has_user_frames(sample) && is_thread_of_kernel(sample),
                           .comm = sample.comm});
  }

  static bool has_user_frames(const PerfSample& sample) {
    return std::ranges::any_of(sample.frames, [](const PerfFrame& f) { return !is_kernel(f); });
  }
  static bool is_thread_of_kernel(const PerfSample& sample) {
    return !sample.frames.empty() && (sample.frames.back().function == "ret_from_fork_asm" ||
                                      sample.frames.back().function == "ret_from_fork" ||
                                      sample.frames.back().function == "kthread");
  }

  FrameId frame(const PerfFrame& from) {
    const bool kernel = is_kernel(from);
    Frame to{.kind = kernel ? FrameKind::kernel : FrameKind::user};
    to.function = profile_.string(from.function);
    if (!from.file.empty()) to.mapping = mapping(from, kernel);
    // Functions are known by their names; addresses would keep each stack apart.
    if (from.function.empty()) to.address = from.address;
    return profile_.frame(to);
  }

  MappingId mapping(const PerfFrame& from, bool kernel) {
    const bool proper = from.file.starts_with("[kernel");
    return profile_.mapping({.start = kernel ? kernel_half : 0,
                             .limit = kernel ? UINT64_MAX : kernel_half,
                             .file = proper ? "[kernel.kallsyms]" : from.file});
  }

  // What is known of a sample; its time is added up when that is known.
  void add_sample() {
    if (!sample_) return;
    const PerfSample& sample = *sample_;
    std::vector<ImportedFrame> frames;
    frames.reserve(sample.frames.size());
    for (const PerfFrame& f : sample.frames) frames.push_back({f.function, is_kernel(f), frame(f)});
    const SampleKey key = charged(profile_, label_of(sample), sample.pid == 0, frames);
    note_time(sample, key);
    sample_.reset();
  }

  void note_time(const PerfSample& sample, const SampleKey& key) {
    ++samples_;
    first_ns_ = std::min(first_ns_, sample.time_ns);
    last_ns_ = std::max(last_ns_, sample.time_ns);
    const uint32_t cpu = sample.cpu.value_or(0);
    seen_cpus_.insert(cpu);
    if (is_clock(sample.event)) {
      sums_overflow_ |= __builtin_add_overflow(sum_ns_, sample.period, &sum_ns_) ||
                        sum_ns_ > static_cast<uint64_t>(INT64_MAX);
      if (sums_overflow_) return;
      profile_.add(key, {.count = 1, .ns = sample.period});
      clock_periods_.push_back(sample.period);
      return;
    }
    // The usual distance is known at the end.
    ++counted_[key];
    uint64_t& last = last_of_cpu_[cpu];
    if (last && sample.time_ns > last) distances_.push_back(sample.time_ns - last);
    last = sample.time_ns;
  }

  static uint64_t median(std::vector<uint64_t>& values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  }

  void finish() {
    // No more than the whole, where nearly all samples are of one moment.
    const uint64_t events = samples_ - clock_periods_.size();
    const uint64_t between =
        std::max(events - std::min<uint64_t>(events, seen_cpus_.size()), uint64_t{1});
    const uint64_t distance =
        std::min(median(distances_), (last_ns_ - first_ns_) * seen_cpus_.size() / between);
    for (const auto& [key, count] : counted_)
      profile_.add(key, {.count = count, .ns = count * distance});
    const uint64_t period = std::max(distance, median(clock_periods_));
    Meta& meta = profile_.meta;
    meta.cpus = std::max({cpus_, *seen_cpus_.rbegin() + 1, uint32_t{1}});
    meta.duration_ns = last_ns_ - first_ns_ + period;
    meta.samples_taken = samples_;
    if (period) meta.frequency_hz = (1'000'000'000 + period / 2) / period;
    meta.degraded.emplace_back(
        "imported from perf: for whom interrupts and softirqs were is not known, and threads of "
        "the "
        "kernel are on rows of their own");
    if (!counted_.empty())
      meta.degraded.emplace_back("events are not of a clock: each counts for " +
                                 std::to_string(distance / 1000) +
                                 " us, the usual distance of two");
    if (strange_) meta.degraded.push_back(std::to_string(strange_) + " lines were not understood");
    if (cut_)
      meta.degraded.push_back(std::to_string(cut_) + " frames of stacks deeper than " +
                              std::to_string(deepest_stack) + " were left out");
    uint64_t sampled = 0;
    for (const auto& sample : profile_.samples()) sampled += sample.value.ns;
    // More than there was: of one process's threads, or several events at once.
    if (sampled > profile_.cpu_ns())
      meta.duration_ns = (sampled + meta.cpus - 1) / meta.cpus;
    else
      add_rest_of_time(profile_, profile_.cpu_ns() - sampled);
  }

  Profile profile_;
  std::optional<PerfSample> sample_;
  uint64_t lines_ = 0;
  uint64_t strange_ = 0;
  uint64_t cut_ = 0;
  uint64_t samples_ = 0;
  uint64_t sum_ns_ = 0;  // of clocks
  bool sums_overflow_ = false;
  uint32_t cpus_ = 0;
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  std::set<uint32_t> seen_cpus_;
  std::map<SampleKey, uint64_t> counted_;  // of events that are not of a clock
  std::map<uint32_t, uint64_t> last_of_cpu_;
  std::vector<uint64_t> distances_;
  std::vector<uint64_t> clock_periods_;
};

}  // namespace

Result<Profile> read_perf_script(std::istream& in) {
  return PerfScript().run(in);
}

}  // namespace pkprof
