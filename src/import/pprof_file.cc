// SPDX-License-Identifier: Apache-2.0
#include "import/pprof_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/charged.h"
#include "model/pprof/format.h"
#include "model/pprof/raw.h"

namespace pkprof {
namespace {

using namespace pprof;

constexpr size_t deepest_raw_stack = size_t{1} << 20;  // that is read, and cut to what is kept
constexpr uint64_t nominal_sample_ns = 1'000'000;      // of a sample, where nothing is known

// Nanoseconds of one; 0 where it is no unit of time.
uint64_t unit_ns(std::string_view unit) {
  if (unit == "nanoseconds" || unit == "ns") return 1;
  if (unit == "microseconds" || unit == "us") return 1'000;
  if (unit == "milliseconds" || unit == "ms") return 1'000'000;
  if (unit == "seconds" || unit == "s") return 1'000'000'000;
  return 0;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Where they are in the table, by their ids.
template <typename Entry>
std::unordered_map<uint64_t, size_t> index_of(const std::vector<Entry>& table, const char* bad) {
  std::unordered_map<uint64_t, size_t> index;
  for (size_t i = 0; i < table.size(); ++i)
    require(table[i].id && index.try_emplace(table[i].id, i).second, bad);
  return index;
}

class Foreign {
 public:
  explicit Foreign(std::string_view message)
      : file_(read_raw(message)),
        mappings_(index_of(file_.mappings, "the ids of its mappings are not unique")),
        functions_(index_of(file_.functions, "the ids of its functions are not unique")),
        locations_(index_of(file_.locations, "the ids of its locations are not unique")),
        frames_(file_.locations.size()) {}

  Result<Profile> run() {
    for (const uint64_t comment : file_.comments)
      if (is_meta_comment(file_.text(comment)))
        return fail("it is one of pkprof's already: pkprof report shows it");
    if (auto r = find_time(); !r) return std::unexpected(r.error());
    name_program();
    for (const protozero::data_view sample : file_.samples) add(sample);
    if (!profile_.meta.samples_taken) return fail("there is no sample in it");
    finish();
    return std::move(profile_);
  }

 private:
  Result<> find_time() {
    std::string others;
    for (size_t i = 0; i < file_.value_types.size(); ++i) {
      const std::string_view type = file_.text(file_.value_types[i].type);
      const std::string_view unit = file_.text(file_.value_types[i].unit);
      if (is_one_of(type, {"samples", "sample", "count", "cpu-samples"}) && unit == "count")
        count_at_ = i;
      if (is_one_of(type, {"cpu", "cpu-time"}) && unit_ns(unit)) {
        time_at_ = i;
        time_unit_ns_ = unit_ns(unit);
      }
      others += (others.empty() ? "" : ", ") + std::string(type) + " (" + std::string(unit) + ")";
    }
    const uint64_t period_unit = unit_ns(file_.text(file_.period_type.unit));
    if (period_unit && file_.text(file_.period_type.type) == "cpu")
      require(!__builtin_mul_overflow(file_.period, period_unit, &period_ns_),
              "its period is out of range");
    if (time_at_ || find_event()) return {};
    if (!count_at_ || !period_ns_)
      return fail("there is no CPU time in it" + (others.empty() ? "" : ": it is of " + others));
    time_at_ = count_at_;
    time_unit_ns_ = period_ns_;
    return {};
  }

  // As perf_to_profile has it: "cpu-clock_sample" and "cpu-clock_event", both counts; a clock's
  // events are nanoseconds.
  bool find_event() {
    constexpr std::string_view sample = "_sample";
    for (size_t i = 0; i + 1 < file_.value_types.size(); ++i) {
      std::string_view name = file_.text(file_.value_types[i].type);
      if (!name.ends_with(sample)) continue;
      name.remove_suffix(sample.size());
      if (file_.text(file_.value_types[i + 1].type) != std::string(name) + "_event") continue;
      name = name.substr(0, name.find(':'));
      const bool clock = is_one_of(name, {"cpu-clock", "task-clock"});
      if (time_at_ && !clock) continue;
      count_at_ = i;
      time_at_ = clock ? i + 1 : i;
      time_unit_ns_ = clock ? 1 : nominal_sample_ns;
      nominal_ = !clock;
      if (clock) break;
    }
    return time_at_.has_value();
  }

  void name_program() {
    for (const RawMapping& mapping : file_.mappings) {
      const std::string_view file = file_.text(mapping.file);
      if (file.empty() || file.starts_with('[')) continue;
      program_ = proper_file(file);
      return;
    }
  }

  [[nodiscard]] std::string text_of(const RawLabel& label) const {
    return label.str ? std::string(file_.text(label.str)) : std::to_string(label.num);
  }

  // Of the sample at hand.
  LabelId process() {
    Label process{.kind = LabelKind::process, .start_ns = 1};
    for (const RawLabel& label : labels_) {
      const std::string_view key = file_.text(label.key);
      const std::string text = text_of(label);
      if (is_one_of(key, {"pid", "tgid", "process_id"}))
        std::from_chars(text.data(), text.data() + text.size(), process.pid);
      if (is_one_of(key, {"comm", "process_name"})) process.comm = text;
    }
    if (process.pid || !process.comm.empty()) {
      named_ = true;
    } else {
      process.exe = program_;
      process.comm = program_.empty() ? "program" : last_part(program_);
    }
    // One name has one number, where numbers are not known.
    process.without_pid = !process.pid;
    if (process.without_pid)
      process.start_ns = numbers_.try_emplace(process.comm, numbers_.size() + 1).first->second;
    return profile_.label(process);
  }

  [[nodiscard]] uint32_t thread() const {
    uint32_t thread = 0;
    for (const RawLabel& label : labels_) {
      if (!is_one_of(file_.text(label.key), {"tid", "thread_id"})) continue;
      const std::string text = text_of(label);
      std::from_chars(text.data(), text.data() + text.size(), thread);
    }
    return thread;
  }

  void add(protozero::data_view sample) {
    read_raw_sample(sample, stack_, values_, labels_, deepest_raw_stack);
    require(values_.size() == file_.value_types.size(),
            "a sample does not have one value of each type");
    for (const uint64_t value : values_)
      require(value <= INT64_MAX,
              "it has negative values, as a difference has: give both profiles to pkprof diff");
    SampleValue value;
    value.count = count_at_ ? values_[*count_at_] : 1;
    require(!__builtin_mul_overflow(values_[*time_at_], time_unit_ns_, &value.ns) &&
                !__builtin_add_overflow(sum_ns_, value.ns, &sum_ns_) && sum_ns_ <= INT64_MAX &&
                !__builtin_add_overflow(profile_.meta.samples_taken, value.count,
                                        &profile_.meta.samples_taken) &&
                profile_.meta.samples_taken <= INT64_MAX,
            "its values add up to too much");
    if (!value.ns && !value.count) return;
    std::vector<ImportedFrame> frames;
    for (const uint64_t id : stack_) {
      const auto it = locations_.find(id);
      require(it != locations_.end(), "a sample is of a location that is not there");
      const std::vector<ImportedFrame>& at = frames_at(it->second);
      const size_t room = std::min(max_depth - frames.size(), at.size());
      cut_ += at.size() - room;
      frames.insert(frames.end(), at.begin(), at.begin() + static_cast<ptrdiff_t>(room));
    }
    stack_frames_ += frames.size();
    require(stack_frames_ <= max_stack_frames, "its stacks are too many");
    SampleKey key = charged(profile_, process(), false, frames);
    key.thread = thread();
    if (key.served == key.ran_on) key.served_thread = key.thread;
    profile_.add(key, value);
  }

  // A frame for each function that was inlined there, the innermost first.
  const std::vector<ImportedFrame>& frames_at(size_t place) {
    std::vector<ImportedFrame>& frames = frames_[place];
    if (!frames.empty()) return frames;
    const RawLocation& location = file_.locations[place];
    Frame frame{.kind = FrameKind::user, .address = location.address};
    if (location.mapping) {
      const auto it = mappings_.find(location.mapping);
      require(it != mappings_.end(), "a location is in a mapping that is not there");
      const RawMapping& mapping = file_.mappings[it->second];
      const std::string_view file = file_.text(mapping.file);
      if (is_kernel(file, location.address)) frame.kind = FrameKind::kernel;
      frame.mapping = profile_.mapping({.start = mapping.start,
                                        .limit = mapping.limit,
                                        .offset = mapping.offset,
                                        .file = std::string(proper_file(file)),
                                        .build_id = std::string(file_.text(mapping.build_id))});
    } else if (is_kernel("", location.address)) {
      frame.kind = FrameKind::kernel;
    }
    const auto put = [&] {
      frames.push_back(
          {profile_.text(frame.function), frame.kind == FrameKind::kernel, profile_.frame(frame)});
    };
    for (size_t i = 0; i < location.line_count; ++i) {
      const RawLine& line = file_.lines[location.first_line + i];
      const auto it = functions_.find(line.function);
      require(!line.function || it != functions_.end(),
              "a line is of a function that is not there");
      frame.function = line.function ? string(file_.functions[it->second].name) : 0;
      frame.file = line.function ? string(file_.functions[it->second].file) : 0;
      frame.line = static_cast<uint32_t>(std::min<uint64_t>(line.line, UINT32_MAX));
      put();
    }
    if (frames.empty()) put();
    return frames;
  }

  StringId string(uint64_t index) { return profile_.string(file_.text(index)); }

  void finish() {
    Meta& meta = profile_.meta;
    meta.start_unix_ns = file_.time;
    meta.duration_ns = file_.duration && file_.duration <= INT64_MAX ? file_.duration : sum_ns_;
    if (period_ns_) meta.frequency_hz = std::max<uint64_t>(1, 1'000'000'000 / period_ns_);
    const uint64_t needs =
        meta.duration_ns ? (sum_ns_ + meta.duration_ns - 1) / meta.duration_ns : 1;
    meta.cpus = needs <= max_cpus ? static_cast<uint32_t>(std::max<uint64_t>(needs, 1)) : 1;
    meta.degraded.emplace_back(
        "imported from pprof: for whom interrupts and softirqs were is not known, nor how many "
        "CPUs "
        "there were");
    if (nominal_)
      meta.degraded.emplace_back(
          "its frequency and length are not known: each sample counts for 1 ms");
    if (cut_)
      meta.degraded.push_back(std::to_string(cut_) + " frames of stacks deeper than " +
                              std::to_string(max_depth) + " were left out");
    if (!named_)
      meta.degraded.emplace_back("it does not say of which process it is: all of it is one");
    add_rest_of_time(profile_, fit_time(meta, sum_ns_));
  }

  const RawFile file_;
  const std::unordered_map<uint64_t, size_t> mappings_;
  const std::unordered_map<uint64_t, size_t> functions_;
  const std::unordered_map<uint64_t, size_t> locations_;
  std::vector<std::vector<ImportedFrame>> frames_;  // by location; empty: not looked up
  Profile profile_;
  std::optional<size_t> time_at_;
  std::optional<size_t> count_at_;
  uint64_t time_unit_ns_ = 0;
  uint64_t period_ns_ = 0;
  bool nominal_ = false;  // it counts events, not time
  uint64_t cut_ = 0;      // frames
  std::string program_;
  bool named_ = false;
  std::unordered_map<std::string, uint64_t> numbers_;
  uint64_t sum_ns_ = 0;
  size_t stack_frames_ = 0;
  // The sample at hand.
  std::vector<uint64_t> stack_;
  std::vector<uint64_t> values_;
  std::vector<RawLabel> labels_;
};

}  // namespace

Result<Profile> read_foreign_pprof(std::span<const std::byte> bytes) {
  return with_plain_bytes(bytes, [](std::string_view message) { return Foreign(message).run(); });
}

}  // namespace pkprof
