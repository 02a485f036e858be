// SPDX-License-Identifier: Apache-2.0
#include "import/perf_script.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "import/charged.h"
#include "import/perf_sample.h"

namespace pkprof {
namespace {

constexpr size_t longest_line = size_t{1} << 16;
constexpr size_t deepest_stack = 1024;
constexpr uint64_t longest_distance_ns = 10'000'000'000;  // of two samples
constexpr uint64_t nominal_ns = 1'000'000;                // of one, where nothing is known
constexpr uint64_t kernel_half = uint64_t{1} << 63;

bool is_clock(std::string_view event) {
  return event == "cpu-clock" || event == "task-clock";
}

bool is_of_kernel(const PerfFrame& frame) {
  return is_kernel(frame.file, frame.address);
}

class PerfScript {
 public:
  explicit PerfScript(std::string_view event) : wanted_(event) {}

  Result<Profile> run(std::istream& in) {
    std::string line;
    while (read_line(in, line)) take(line);
    add_sample();
    if (events_.empty())
      return fail("there is no sample in it: it is to be what `perf script` prints");
    const Event* event = choose();
    if (!event) return fail("there is no event " + wanted_ + " in it, but " + names_of(nullptr));
    if (event->overflows) return fail("its times add up to more than can be");
    finish(*event);
    return std::move(profile_);
  }

 private:
  // Names of functions may be longer than any line that is kept.
  bool read_line(std::istream& in, std::string& line) {
    line.clear();
    bool any = false;
    bool cut = false;
    for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
      any = true;
      if (c == '\n') break;
      if (line.size() < longest_line)
        line += static_cast<char>(c);
      else
        cut = true;
    }
    cut_lines_ += cut;
    return any;
  }

  void take(const std::string& line) {
    if (line.starts_with('#')) {
      take_fact(line);
    } else if (line.find_first_not_of(" \t\r") == std::string::npos) {
      add_sample();
    } else if (line.front() == '\t' && begin_with_frame()) {
      // Not a new sample before its stack has ended: a frame's name may look like anything.
      if (!add_frame(line)) ++strange_;
    } else if (auto sample = parse_perf_header(line)) {
      add_sample();
      sample_ = std::move(sample);
    } else if (!sample_ || (!is_source_line(line) && !add_frame(line))) {
      ++strange_;
      if (!sample_) before_ = line;
    }
  }

  // A line that says who and no more was a sample's, if a frame follows.
  bool begin_with_frame() {
    if (sample_) return true;
    sample_ = parse_bare_perf_header(std::exchange(before_, ""));
    strange_ -= sample_.has_value();
    return sample_.has_value();
  }

  bool add_frame(const std::string& line) {
    auto frame = parse_perf_frame(line);
    if (!frame) return false;
    if (sample_->frames.size() < deepest_stack)
      sample_->frames.push_back(std::move(*frame));
    else
      ++cut_;
    return true;
  }

  // "  main.c:12", of the frame before it; where that is not known "  libc.so.6[7f1e2d3c]", and of
  // code that was made at run time "  [JIT] tid 812[7f1e2d3c]"
  [[nodiscard]] bool is_source_line(std::string_view line) const {
    if (!line.starts_with("  ") || sample_->frames.empty()) return false;
    if (const size_t more = line.rfind(" (discriminator "); more != std::string_view::npos)
      line = line.substr(0, more);
    if (line.ends_with(']')) {
      const size_t address = line.rfind('[') + 1;
      return address < line.size() - 1 &&
             line.find_first_not_of("0123456789abcdef", address) == line.size() - 1;
    }
    const size_t colon = line.rfind(':');
    return colon != std::string_view::npos && colon + 1 < line.size() &&
           line.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
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
    if (is_idle(sample)) return profile_.label({.kind = LabelKind::idle});
    // Of a thread that had ended perf says no more than -1.
    const bool ended = sample.comm == ":-1";
    return profile_.label({.kind = LabelKind::process,
                           .pid = sample.pid.value_or(0),
                           .start_ns = program_of(sample),
                           .kthread = !has_user_frames(sample) && is_thread_of_kernel(sample),
                           .without_pid = !sample.pid && !ended,
                           .comm = ended ? "(ended)" : sample.comm});
  }

  // A process that goes by another name is another program: the shell's child, before and after it
  // is the command. Its threads' names are their own.
  uint64_t program_of(const PerfSample& sample) {
    std::map<std::string, uint64_t>& names = programs_[sample.pid.value_or(0)];
    if (sample.pid && sample.tid != *sample.pid) return std::max<uint64_t>(names.size(), 1);
    return names.try_emplace(sample.comm, names.size() + 1).first->second;
  }

  static bool is_idle(const PerfSample& sample) {
    return sample.pid ? *sample.pid == 0 : sample.comm == "swapper";
  }

  static bool has_user_frames(const PerfSample& sample) {
    return std::ranges::any_of(sample.frames, [](const PerfFrame& f) { return !is_of_kernel(f); });
  }
  static bool is_thread_of_kernel(const PerfSample& sample) {
    return !sample.frames.empty() && (sample.frames.back().function == "ret_from_fork_asm" ||
                                      sample.frames.back().function == "ret_from_fork" ||
                                      sample.frames.back().function == "kthread");
  }

  FrameId frame(const PerfFrame& from) {
    const bool kernel = is_of_kernel(from);
    Frame to{.kind = kernel ? FrameKind::kernel : FrameKind::user};
    to.function = profile_.string(from.function);
    if (!from.file.empty()) to.mapping = mapping(from, kernel);
    // Functions are known by their names; addresses would keep each stack apart.
    if (from.function.empty()) to.address = from.address;
    return profile_.frame(to);
  }

  MappingId mapping(const PerfFrame& from, bool kernel) {
    return profile_.mapping({.start = kernel ? kernel_half : 0,
                             .limit = kernel ? UINT64_MAX : kernel_half,
                             .file = std::string(proper_file(from.file))});
  }

  struct Counted {
    uint64_t samples = 0;
    uint64_t without_period = 0;  // of them
    uint64_t ns = 0;              // of the others' periods
  };
  // What the samples of one event say.
  struct Event {
    std::string name;
    uint64_t order = 0;  // of its first sample
    bool clock = false;
    uint64_t samples = 0;
    std::map<SampleKey, Counted> values;
    uint64_t sum_ns = 0;  // of a clock's periods
    bool overflows = false;
    std::vector<uint64_t> periods;
    std::vector<uint64_t> distances;
    std::map<uint32_t, uint64_t> last_of_cpu;
    std::vector<uint64_t> times;
    std::set<uint32_t> cpus;
  };

  // What is known of a sample; what its time is, is known when all are.
  void add_sample() {
    if (!sample_) return;
    const PerfSample& sample = *sample_;
    std::vector<ImportedFrame> frames;
    frames.reserve(sample.frames.size());
    for (const PerfFrame& f : sample.frames)
      frames.push_back({f.function, is_of_kernel(f), frame(f)});
    const SampleKey key = charged(profile_, label_of(sample), is_idle(sample), frames);
    count(sample, key);
    sample_.reset();
  }

  void count(const PerfSample& sample, const SampleKey& key) {
    Event& event = events_[sample.event];
    if (!event.samples++) {
      event.name = sample.event;
      event.order = events_.size();
      event.clock = is_clock(sample.event);
    }
    const uint32_t cpu = sample.cpu.value_or(0);
    event.cpus.insert(cpu);
    Counted& value = event.values[key];
    ++value.samples;
    if (event.clock && sample.period) {
      event.overflows |= __builtin_add_overflow(event.sum_ns, *sample.period, &event.sum_ns) ||
                         event.sum_ns > static_cast<uint64_t>(INT64_MAX);
      if (event.overflows) return;
      value.ns += *sample.period;
      event.periods.push_back(*sample.period);
    } else {
      ++value.without_period;
    }
    if (!sample.time_ns) return;
    event.times.push_back(*sample.time_ns);
    uint64_t& last = event.last_of_cpu[cpu];
    if (last && *sample.time_ns > last && *sample.time_ns - last <= longest_distance_ns)
      event.distances.push_back(*sample.time_ns - last);
    last = *sample.time_ns;
  }

  // A clock, if none is asked for, or what the file begins with.
  [[nodiscard]] const Event* choose() const {
    const Event* best = nullptr;
    for (const auto& [name, event] : events_) {
      if (!wanted_.empty() && name != wanted_) continue;
      const auto rank = [](const Event& e) { return std::pair(!e.clock, e.order); };
      if (!best || rank(event) < rank(*best)) best = &event;
    }
    return best;
  }

  // "cycles (500 samples), faults (3 samples)", without `but`.
  [[nodiscard]] std::string names_of(const Event* but) const {
    std::string names;
    for (const auto& [name, event] : events_) {
      if (&event == but) continue;
      if (!names.empty()) names += ", ";
      names += (name.empty() ? "one without a name" : name) + " (" + std::to_string(event.samples) +
               (event.samples == 1 ? " sample)" : " samples)");
    }
    return names;
  }

  static uint64_t median(std::vector<uint64_t> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  }

  // From the first sample to the last, but for times in which there was none on any CPU.
  static uint64_t length_ns(std::vector<uint64_t> times) {
    std::ranges::sort(times);
    uint64_t ns = 0;
    for (size_t i = 1; i < times.size(); ++i)
      if (const uint64_t gap = times[i] - times[i - 1]; gap <= longest_distance_ns) ns += gap;
    return ns;
  }

  void finish(const Event& event) {
    Meta& meta = profile_.meta;
    const uint64_t length = length_ns(event.times);
    // No more than the whole, where nearly all samples are of one moment.
    const uint64_t between =
        std::max(event.samples - std::min<uint64_t>(event.samples, event.cpus.size()), uint64_t{1});
    const uint64_t evenly = length / between * event.cpus.size();
    const uint64_t distance = std::min(median(event.distances), evenly);
    const uint64_t period = event.periods.empty() ? distance : median(event.periods);
    const uint64_t each = period ? std::min(period, longest_distance_ns) : nominal_ns;
    uint64_t sampled = 0;
    for (const auto& [key, value] : event.values) {
      const uint64_t ns = value.ns + value.without_period * each;
      profile_.add(key, {.count = value.samples, .ns = ns});
      sampled += ns;
    }
    meta.cpus = std::max({cpus_, *event.cpus.rbegin() + 1, uint32_t{1}});
    meta.duration_ns = length + each;
    meta.samples_taken = event.samples;
    if (period) meta.frequency_hz = std::max<uint64_t>((1'000'000'000 + period / 2) / period, 1);
    say_what_is_missing(event, each, period != 0);
    // Threads of one process may have more than there was.
    const uint64_t rest = fit_time(meta, sampled);
    if (period) add_rest_of_time(profile_, rest);
  }

  void say_what_is_missing(const Event& event, uint64_t each, bool known) {
    std::vector<std::string>& say = profile_.meta.degraded;
    say.emplace_back(
        "imported from perf: for whom interrupts and softirqs were is not known, and threads of "
        "the kernel are on rows of their own");
    if (events_.size() > 1)
      say.push_back("of several events only " + event.name +
                    " is in it (--event chooses); left out: " + names_of(&event));
    if (!known)
      say.push_back("its frequency and length are not known: each sample counts for " +
                    std::to_string(each / 1'000'000) + " ms");
    else if (event.periods.empty())
      say.push_back(
          std::string(event.clock ? "periods were not printed" : "events are not of a clock") +
          ": each counts for " + std::to_string(each / 1000) + " us, the usual distance of two");
    if (strange_) say.push_back(std::to_string(strange_) + " lines were not understood");
    if (cut_lines_)
      say.push_back(std::to_string(cut_lines_) + " lines longer than " +
                    std::to_string(longest_line) + " bytes were cut");
    if (cut_)
      say.push_back(std::to_string(cut_) + " frames of stacks deeper than " +
                    std::to_string(deepest_stack) + " were left out");
  }

  std::string wanted_;                                            // event
  std::map<uint32_t, std::map<std::string, uint64_t>> programs_;  // by process, numbered
  Profile profile_;
  std::optional<PerfSample> sample_;
  std::string before_;  // the last line, where it was none of a sample's
  uint64_t strange_ = 0;
  uint64_t cut_lines_ = 0;
  uint64_t cut_ = 0;
  uint32_t cpus_ = 0;
  std::map<std::string, Event> events_;
};

}  // namespace

Result<Profile> read_perf_script(std::istream& in, std::string_view event) {
  return PerfScript(event).run(in);
}

}  // namespace pkprof
