// SPDX-License-Identifier: Apache-2.0
#include "import/perf_sample.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace pkprof {
namespace {

constexpr uint32_t most_cpus = 65536;
constexpr uint64_t longest_seconds = 10'000'000'000;  // since 1970, by some clocks
constexpr size_t shortest_address = 6;                // digits, where it stands by itself
constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// A word's place in the line.
struct Word {
  size_t begin;
  std::string_view text;
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (size_t i = line.find_first_not_of(blanks); i != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, i), line.size());
    words.push_back({i, line.substr(i, end - i)});
    i = line.find_first_not_of(blanks, end);
  }
  return words;
}

template <typename Number>
bool parse_number(std::string_view text, Number& to, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "4711.123456:", with as many digits behind the point as perf was asked for.
bool parse_time(std::string_view text, uint64_t& ns) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || !text.ends_with(':')) return false;
  const std::string_view fraction = text.substr(point + 1, text.size() - point - 2);
  uint64_t seconds = 0;
  uint64_t part = 0;
  if (fraction.empty() || fraction.size() > 9 || !parse_number(text.substr(0, point), seconds) ||
      !parse_number(fraction, part) || seconds > longest_seconds)
    return false;
  for (size_t i = fraction.size(); i < 9; ++i) part *= 10;
  ns = seconds * 1'000'000'000 + part;
  return true;
}

// "812" or "812/813"; -1 of threads that had ended.
bool parse_ids(std::string_view text, PerfSample& to) {
  const size_t slash = text.find('/');
  const std::string_view first = text.substr(0, slash);
  const std::string_view second = slash == std::string_view::npos ? first : text.substr(slash + 1);
  if (first == "-1") return second == "-1";
  uint32_t pid = 0;
  if (!parse_number(first, pid) || !parse_number(second, to.tid)) return false;
  to.pid = pid;
  return true;
}

bool parse_cpu(std::string_view text, PerfSample& to) {
  uint32_t cpu = 0;
  if (text.size() < 3 || text.front() != '[' || text.back() != ']' ||
      !parse_number(text.substr(1, text.size() - 2), cpu) || cpu >= most_cpus)
    return false;
  to.cpu = cpu;
  return true;
}

// "d.h1.", as the kernel's tracers have it, or "K", "U".
bool is_flags(std::string_view text) {
  const bool dotted = text.size() <= 6 && text.contains('.');
  return text.size() <= 6 && std::ranges::all_of(text, [dotted](char c) {
           return dotted ? c == '.' || std::isalnum(static_cast<unsigned char>(c))
                         : std::string_view("KUHGgMLESX*").contains(c);
         });
}

bool is_hex(std::string_view text) {
  uint64_t number = 0;
  return parse_number(text, number, 16);
}

bool is_event(std::string_view text) {
  return text.size() > 1 && text.ends_with(':') &&
         !std::isdigit(static_cast<unsigned char>(text.front())) && text.front() != ':' &&
         text.find_first_of("()<>\"") == std::string_view::npos;
}

// Without "u", "ppp" and their like behind it.
std::string_view event_name(std::string_view text) {
  text.remove_suffix(1);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return text;
  const bool modifiers =
      text.find_first_not_of("ukhGHIpPSDWeb", colon + 1) == std::string_view::npos;
  return modifiers ? text.substr(0, colon) : text;
}

// A line in words. Each function parses a part of it, up to or from one of them.
class Header {
 public:
  explicit Header(std::string_view line) : line_(line), words_(words_of(line)) {}

  // A name may look like anything: the time is the last word that can be one.
  [[nodiscard]] std::optional<PerfSample> parse() const {
    for (size_t at = words_.size(); at-- > 0;) {
      PerfSample sample;
      uint64_t ns = 0;
      if (!parse_time(words_[at].text, ns) || !parse_who(at, true, sample)) continue;
      if (!parse_what(at + 1, sample)) continue;
      sample.time_ns = ns;
      // Any text may have a number with a colon behind it.
      if (!sample.event.empty() || sample.pid || sample.cpu || sample.comm == ":-1") return sample;
    }
    for (size_t at = 1; at < words_.size(); ++at) {
      if (!is_event(words_[at].text)) continue;
      PerfSample sample;
      // A number before the event is a period where there is another one before it.
      uint64_t number = 0;
      size_t what = at - 1;
      if (!parse_number(words_[what].text, number) || !parse_who(what, false, sample)) {
        sample = {};
        what = at;
        if (!parse_who(what, false, sample)) continue;
      }
      if (parse_what(what, sample)) return sample;
    }
    // Neither: only a frame behind the rest tells it from any text.
    for (size_t at = 2; at < words_.size(); ++at) {
      if (words_[at].text.size() < shortest_address || !is_hex(words_[at].text)) continue;
      if (auto sample = parse_bare(at); sample && parse_what(at, *sample)) return sample;
    }
    return {};
  }

  // With neither time nor event, up to the word `end`.
  [[nodiscard]] std::optional<PerfSample> parse_bare(size_t end) const {
    PerfSample sample;
    uint64_t period = 0;
    if (end > 2 && parse_number(words_[end - 1].text, period) &&
        parse_who(end - 1, false, sample)) {
      sample.period = period;
      return sample;
    }
    sample = {};
    return parse_who(end, false, sample) ? std::optional(sample) : std::nullopt;
  }
  [[nodiscard]] std::optional<PerfSample> parse_bare() const { return parse_bare(words_.size()); }

 private:
  // What is before the word `end`. With a time behind it, it may be little.
  bool parse_who(size_t end, bool timed, PerfSample& to) const {
    while (timed && end > 1 && is_flags(words_[end - 1].text)) --end;
    if (end > 0 && parse_cpu(words_[end - 1].text, to)) --end;
    if (end == 0) return timed;
    const Word& last = words_[end - 1];
    const bool ids = parse_ids(last.text, to);
    if (!ids && !timed) return false;
    const size_t name_ends = ids ? last.begin : last.begin + last.text.size();
    to.comm = trimmed(line_.substr(0, name_ends));
    return !to.comm.empty() || timed;
  }

  // What is behind: an event or a frame, or nothing at all.
  bool parse_what(size_t at, PerfSample& to) const {
    if (at == words_.size()) return true;
    uint64_t period = 0;
    if (at < words_.size() && parse_number(words_[at].text, period) &&
        (at + 1 == words_.size() || is_event(words_[at + 1].text))) {
      to.period = period;
      ++at;
    }
    if (at < words_.size() && is_event(words_[at].text)) to.event = event_name(words_[at++].text);
    // The last of the numbers there, and nothing of what a tracepoint says.
    const bool event = !to.event.empty();
    if (at >= words_.size() || !is_hex(words_[at].text)) return event || at >= words_.size();
    while (at + 1 < words_.size() && is_hex(words_[at + 1].text)) ++at;
    auto frame = parse_perf_frame(line_.substr(words_[at].begin));
    if (!frame) return event;
    to.frames.push_back(std::move(*frame));
    return true;
  }

  std::string_view line_;
  std::vector<Word> words_;
};

// Where "(file)" begins in "function (file)": names and paths may have parentheses of their own.
size_t begin_of_file(std::string_view text) {
  if (!text.ends_with(')')) return std::string_view::npos;
  if (text.front() == '(') return 0;
  for (const std::string_view begin : {" (/", " (["})
    if (const size_t at = text.find(begin); at != std::string_view::npos) return at + 1;
  const size_t at = text.rfind(" (");
  return at == std::string_view::npos ? at : at + 1;
}

// "tcp_recvmsg+0x64" without the offset.
std::string_view without_offset(std::string_view text) {
  const size_t plus = text.rfind("+0x");
  if (plus == std::string_view::npos || plus == 0 || plus + 3 == text.size() ||
      text.find_first_not_of("0123456789abcdef", plus + 3) != std::string_view::npos)
    return text;
  return text.substr(0, plus);
}

}  // namespace

std::optional<PerfSample> parse_perf_header(std::string_view line) {
  return Header(trimmed(line)).parse();
}

std::optional<PerfSample> parse_bare_perf_header(std::string_view line) {
  return Header(trimmed(line)).parse_bare();
}

std::optional<PerfFrame> parse_perf_frame(std::string_view line) {
  const bool of_stack = line.starts_with('\t');
  line = trimmed(line);
  PerfFrame frame;
  const size_t first = std::min(line.find(' '), line.size());
  if (!parse_number(line.substr(0, first), frame.address, 16)) return {};
  const std::string_view rest = trimmed(line.substr(first));
  if (rest.empty())
    return of_stack || first >= shortest_address ? std::optional(frame) : std::nullopt;
  const size_t file = begin_of_file(rest);
  frame.function = without_offset(trimmed(rest.substr(0, file)));
  if (file != std::string_view::npos)
    frame.file = without_offset(rest.substr(file + 1, rest.size() - file - 2));
  if (frame.function == "[unknown]") frame.function.clear();
  if (frame.file == "[unknown]" || frame.file == "inlined") frame.file.clear();
  return frame;
}

}  // namespace pkprof
