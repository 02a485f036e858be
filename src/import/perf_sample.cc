// SPDX-License-Identifier: Apache-2.0
#include "import/perf_sample.h"

#include <algorithm>
#include <charconv>

namespace pkprof {
namespace {

constexpr uint32_t most_cpus = 65536;
constexpr uint64_t longest_seconds = 100'000'000;  // since boot: three years
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

// "812" or "812/813"; idle threads have -1 in some.
bool parse_ids(std::string_view text, PerfSample& to) {
  const size_t slash = text.find('/');
  if (!parse_number(text.substr(0, slash), to.pid)) return false;
  to.tid = to.pid;
  return slash == std::string_view::npos || parse_number(text.substr(slash + 1), to.tid);
}

}  // namespace

std::optional<PerfSample> parse_perf_header(std::string_view line) {
  line = trimmed(line);
  if (!line.ends_with(':')) return {};
  const std::vector<Word> words = words_of(line);
  // A name may look like anything: the time is the last word that can be one.
  PerfSample sample;
  size_t time = words.size();
  while (time-- > 0)
    if (parse_time(words[time].text, sample.time_ns)) break;
  if (time >= words.size() || time + 1 >= words.size()) return {};
  size_t ids = time;
  uint32_t cpu = 0;
  const std::string_view before = time > 0 ? words[time - 1].text : "";
  if (before.size() > 2 && before.front() == '[' && before.back() == ']' &&
      parse_number(before.substr(1, before.size() - 2), cpu) && cpu < most_cpus) {
    sample.cpu = cpu;
    --ids;
  }
  if (ids < 2 || !parse_ids(words[ids - 1].text, sample)) return {};
  sample.comm = trimmed(line.substr(0, words[ids - 1].begin));
  size_t event = time + 1;
  if (event + 1 < words.size() && parse_number(words[event].text, sample.period)) ++event;
  const std::string_view name = words[event].text;
  sample.event = name.substr(0, name.find(':'));
  return sample;
}

std::optional<PerfFrame> parse_perf_frame(std::string_view line) {
  line = trimmed(line);
  PerfFrame frame;
  const size_t first = line.find(' ');
  if (first == std::string_view::npos || !parse_number(line.substr(0, first), frame.address, 16))
    return {};
  std::string_view rest = trimmed(line.substr(first));
  // "tcp_recvmsg+0x64 ([kernel.kallsyms])": names and paths may have parentheses of their own.
  size_t file = std::string_view::npos;
  for (size_t plus = rest.rfind("+0x"); plus != std::string_view::npos && plus > 0;
       plus = rest.rfind("+0x", plus - 1)) {
    const size_t end = std::min(rest.find_first_not_of("0123456789abcdef", plus + 3), rest.size());
    if (end == plus + 3 || (end < rest.size() && !rest.substr(end).starts_with(" ("))) continue;
    file = end < rest.size() ? end + 1 : end;
    frame.function = rest.substr(0, plus);
    break;
  }
  if (file == std::string_view::npos) {
    const size_t open = rest.rfind(" (");
    file = rest.front() == '(' ? 0 : open == std::string_view::npos ? rest.size() : open + 1;
    frame.function = trimmed(rest.substr(0, file));
  }
  if (file < rest.size() && rest.ends_with(')'))
    frame.file = rest.substr(file + 1, rest.size() - file - 2);
  if (frame.function == "[unknown]") frame.function.clear();
  if (frame.file == "[unknown]" || frame.file == "inlined") frame.file.clear();
  return frame;
}

}  // namespace pkprof
