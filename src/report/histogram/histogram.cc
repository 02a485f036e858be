// SPDX-License-Identifier: Apache-2.0
// See histogram.h. First every sample gets its place, then the places of the one file are counted
// into rows.
#include "report/histogram/histogram.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "report/groups.h"
#include "report/histogram/address_range.h"

namespace pkprof {

namespace {

using Kind = HistogramElsewhere::Kind;

constexpr std::array<std::string_view, 7> elsewhere_names = {
    "outside", "file", "memory", "no address", "system calls", "kernel", "asynchronous"};

// What a program in the kernel left is the address after the instruction that called: on x86 these
// are all of two bytes (syscall, sysenter, int 0x80).
constexpr uint64_t call_bytes = 2;

// A file as it was: another one may have come under its name.
using FileKey = std::pair<std::string, std::string>;

bool is_system_call(std::string_view source) {
  return source == "syscall" || source.starts_with("syscall:");
}

struct CodePlace {
  Kind kind = Kind::file;  // file: at an address of it, the chosen one or another
  const Mapping* mapping = nullptr;
  uint64_t vaddr = 0;
  StringId function = 0;
};

class Placer {
 public:
  Placer(const Profile& profile, const HistogramOptions& options)
      : profile_(profile), kernel_apart_(options.kernel) {}

  [[nodiscard]] CodePlace of(const SampleKey& key) const {
    if (key.basis != Basis::own || key.ran_on != key.served) return {.kind = Kind::asynchronous};
    const std::string& source = profile_.text(key.source);
    const bool in_user = source == "user";
    const bool called = is_system_call(source);
    if (kernel_apart_ && !in_user) return {.kind = called ? Kind::system_calls : Kind::kernel};
    const Frame* frame = user_frame(key.stack);
    if (!frame) return {.kind = in_user ? Kind::memory : Kind::no_address};
    CodePlace place{.function = frame->function};
    if (frame->mapping == no_mapping) return {.kind = Kind::memory};
    place.mapping = &profile_.mappings()[frame->mapping];
    if (place.mapping->vaddr == no_vaddr) {
      place.kind = Kind::memory;
    } else {
      place.vaddr = frame->address - place.mapping->start + place.mapping->vaddr;
      if (called) place.vaddr -= call_bytes;
    }
    return place;
  }

 private:
  // The innermost: where the program was when it entered the kernel, if it did.
  [[nodiscard]] const Frame* user_frame(StackId stack) const {
    for (const FrameId id : profile_.frames_of(stack)) {
      const Frame& frame = profile_.frames()[id];
      if (frame.kind == FrameKind::user) return &frame;
    }
    return nullptr;
  }

  const Profile& profile_;
  const bool kernel_apart_;
};

// How well a name that was given says which file: 3 its path, 2 its name, 1 the name of a library
// without version, 0 not at all.
int matches(std::string_view file, std::string_view name) {
  if (file == name) return 3;
  const std::string_view base = file.substr(file.rfind('/') + 1);
  if (base == name) return 2;
  if (name.empty() || !base.starts_with(name)) return 0;
  const std::string_view rest = base.substr(name.size());
  return rest.starts_with(".so") || (rest.starts_with("-") && rest.contains(".so")) ? 1 : 0;
}

// In each file, of the processes that are selected.
std::map<std::string, uint64_t> time_by_file(const Profile& profile,
                                             const HistogramOptions& options) {
  std::map<std::string, uint64_t> ns;
  for (const Mapping& mapping : profile.mappings()) ns[mapping.file];
  const Placer placer(profile, options);
  for (const auto& [key, value] : profile.samples()) {
    if (!is_selected(profile.labels()[key.served], options.pids)) continue;
    if (const CodePlace place = placer.of(key); place.kind == Kind::file)
      ns[place.mapping->file] += value.ns;
  }
  return ns;
}

// What was counted at one address.
struct Point {
  HistogramValue value;
  StringId function = 0;
};
using Points = std::map<uint64_t, Point>;

struct Sorted {
  std::map<FileKey, Points> files;
  std::map<std::pair<Kind, std::string>, HistogramValue> others;
  HistogramValue all;
};

Sorted sort_out(const Profile& profile, const HistogramOptions& options) {
  Sorted sorted;
  const Placer placer(profile, options);
  for (const auto& [key, value] : profile.samples()) {
    if (!is_selected(profile.labels()[key.served], options.pids)) continue;
    const HistogramValue counted{value.count, value.ns};
    sorted.all += counted;
    const CodePlace place = placer.of(key);
    if (place.kind == Kind::file) {
      Point& point = sorted.files[{place.mapping->file, place.mapping->build_id}][place.vaddr];
      point.value += counted;
      point.function = place.function;
    } else {
      sorted.others[{place.kind, place.mapping ? place.mapping->file : ""}] += counted;
    }
  }
  return sorted;
}

uint64_t sum_ns(const Points& points) {
  uint64_t ns = 0;
  for (const auto& [address, point] : points) ns += point.value.ns;
  return ns;
}

// Of the files under that name the one with the most time, if the code does not say which.
FileKey choose_build(const Sorted& sorted, const std::string& file, const FileCode* code) {
  if (code) return {file, code->build_id};
  FileKey best{file, ""};
  uint64_t most = 0;
  for (const auto& [key, points] : sorted.files) {
    if (const uint64_t ns = sum_ns(points); key.first == file && ns > most) {
      best = key;
      most = ns;
    }
  }
  return best;
}

class Builder {
 public:
  Builder(const Profile& profile, const HistogramOptions& options, const FileCode* code)
      : profile_(profile), options_(options), code_(code), sorted_(sort_out(profile, options)) {}

  Result<Histogram> run(const std::string& file) {
    const FileKey key = choose_build(sorted_, file, code_);
    out_.file = key.first;
    out_.build_id = key.second;
    out_.all = sorted_.all;
    points_ = &sorted_.files[key];
    auto range = find_range();
    if (!range) return std::unexpected(range.error());
    make_rows(*range);
    put_elsewhere(key, *range);
    return std::move(out_);
  }

 private:
  Result<AddressRange> find_range() const;
  [[nodiscard]] Result<AddressRange> whole() const;
  [[nodiscard]] Result<AddressRange> sampled_range_of(const std::string& name) const;
  void make_rows(const AddressRange& range);
  void add_symbols(HistogramRow& row) const;
  void put_elsewhere(const FileKey& key, const AddressRange& range);
  template <typename Use>
  void for_points(uint64_t first, uint64_t last, Use use) const {
    for (auto it = points_->lower_bound(first); it != points_->end() && it->first <= last; ++it)
      use(it->first, it->second);
  }

  const Profile& profile_;
  const HistogramOptions& options_;
  const FileCode* code_;
  Sorted sorted_;
  const Points* points_ = nullptr;
  Histogram out_;
};

Result<AddressRange> Builder::find_range() const {
  if (options_.range.empty()) return whole();
  if (auto range = parse_range(options_.range)) return *range;
  return code_ ? range_of_function(*code_, options_.range) : sampled_range_of(options_.range);
}

Result<AddressRange> Builder::whole() const {
  if (code_ && code_->end > code_->start) return AddressRange{code_->start, code_->end - 1};
  std::optional<AddressRange> range;
  for (const Mapping& m : profile_.mappings()) {
    if (m.file != out_.file || m.build_id != out_.build_id || m.vaddr == no_vaddr ||
        m.limit <= m.start)
      continue;
    const AddressRange one{m.vaddr, m.vaddr + (m.limit - m.start - 1)};
    if (one.last < one.first) continue;
    if (!range) range = one;
    range = {std::min(range->first, one.first), std::max(range->last, one.last)};
  }
  if (range) return *range;
  return fail(out_.file + ": its addresses are not known: " +
              (code_ ? "it has no code" : "the recording has no sample in it, or is an old one"));
}

// From the first to the last address that has a sample: where a function ends a profile does not
// tell.
Result<AddressRange> Builder::sampled_range_of(const std::string& name) const {
  std::optional<AddressRange> range;
  for (const auto& [address, point] : *points_) {
    if (!is_called(profile_.text(point.function), name)) continue;
    if (!range) range = {address, address};
    range->last = address;
  }
  if (range) return *range;
  return fail("-r " + name + ": neither START-END nor a function of " + out_.file +
              " that has a sample");
}

void Builder::make_rows(const AddressRange& range) {
  if (options_.rows == 0) {
    for_points(range.first, range.last, [&](uint64_t address, const Point&) {
      out_.rows.push_back({.first = address, .last = address});
    });
  } else {
    // Rows of equal size but for the last one; never less than an address. There may be 2^64 in
    // one, so what is counted is one less.
    const uint64_t more = (range.last - range.first) / options_.rows;
    for (uint64_t first = range.first;; first += more + 1) {
      const bool is_last = range.last - first <= more;
      out_.rows.push_back({.first = first, .last = is_last ? range.last : first + more});
      if (is_last) break;
    }
  }
  for (HistogramRow& row : out_.rows) {
    for_points(row.first, row.last,
               [&](uint64_t, const Point& point) { row.value += point.value; });
    out_.here += row.value;
    add_symbols(row);
  }
}

void Builder::add_symbols(HistogramRow& row) const {
  std::vector<HistogramSymbol>& symbols = row.symbols;
  if (code_) {
    const auto& all = code_->functions;
    auto it = std::partition_point(all.begin(), all.end(),
                                   [&](const FileCode::Function& f) { return f.end <= row.first; });
    for (; it != all.end() && it->start <= row.last; ++it) {
      HistogramSymbol symbol{it->name, it->start < row.first ? row.first - it->start : 0, {}};
      for_points(std::max(it->start, row.first), std::min(it->end - 1, row.last),
                 [&](uint64_t, const Point& point) { symbol.value += point.value; });
      symbols.push_back(std::move(symbol));
    }
  } else {
    std::map<StringId, size_t> places;
    for_points(row.first, row.last, [&](uint64_t, const Point& point) {
      if (point.function == 0) return;
      const auto [it, fresh] = places.try_emplace(point.function, symbols.size());
      if (fresh) symbols.push_back({.name = profile_.text(point.function)});
      symbols[it->second].value += point.value;
    });
  }
  std::ranges::stable_sort(symbols, [](const HistogramSymbol& a, const HistogramSymbol& b) {
    return a.value.ns > b.value.ns;
  });
}

void Builder::put_elsewhere(const FileKey& chosen, const AddressRange& range) {
  const auto put = [&](Kind kind, const std::string& name, const HistogramValue& value) {
    if (value.samples || value.ns) out_.elsewhere.push_back({kind, name, value});
  };
  for (const auto& [key, points] : sorted_.files) {
    HistogramValue value;
    for (const auto& [address, point] : points)
      if (key != chosen || address < range.first || address > range.last) value += point.value;
    put(key == chosen ? Kind::outside : Kind::file, key.first, value);
  }
  for (const auto& [what, value] : sorted_.others) put(what.first, what.second, value);
  std::ranges::stable_sort(out_.elsewhere,
                           [](const auto& a, const auto& b) { return a.value.ns > b.value.ns; });
}

}  // namespace

std::string_view to_string(Kind kind) {
  const auto i = static_cast<size_t>(kind);
  return i < elsewhere_names.size() ? elsewhere_names[i] : "?";
}

HistogramValue& HistogramValue::operator+=(const HistogramValue& o) {
  samples += o.samples;
  ns += o.ns;
  return *this;
}

Result<std::string> histogram_file(const Profile& profile, const HistogramOptions& options) {
  std::string best;
  std::pair<int, uint64_t> most{0, 0};
  std::string names;
  const auto consider = [&](const std::string& file, int match, uint64_t ns) {
    if (match == 0 || std::pair(match, ns) < most ||
        (!best.empty() && std::pair(match, ns) == most))
      return;
    best = file;
    most = {match, ns};
  };
  const auto is_program = [&](const std::string& file) {
    return std::ranges::any_of(profile.labels(), [&](const Label& label) {
      return is_selected(label, options.pids) && label.exe == file;
    });
  };
  const auto time = time_by_file(profile, options);
  for (const auto& [file, ns] : time) {
    const bool is_file = file.starts_with('/') && !file.starts_with("//");
    if (!is_file && file != "[vdso]") continue;
    names += (names.empty() ? "" : ", ") + file.substr(file.rfind('/') + 1);
    if (options.library.empty())
      consider(file, is_program(file) ? 2 : 1, ns);
    else
      consider(file, matches(file, options.library), ns);
  }
  if (!best.empty()) return best;
  if (!options.library.empty())
    return fail("--library " + options.library + ": no such file was mapped" +
                (names.empty() ? "" : "; there were: " + names));
  return fail("no code of any file was mapped: there is nothing to draw");
}

Result<Histogram> histogram_of(const Profile& profile, const HistogramOptions& options,
                               const FileCode* code) {
  const auto file = histogram_file(profile, options);
  if (!file) return std::unexpected(file.error());
  return Builder(profile, options, code).run(*file);
}

}  // namespace pkprof
