// SPDX-License-Identifier: Apache-2.0
#include "args/quantities.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

namespace pkprof {
namespace {

constexpr uint64_t second_ns = 1'000'000'000;

using Unit = std::pair<char, uint64_t>;
constexpr Unit ages[] = {{'s', second_ns},
                         {'m', 60 * second_ns},
                         {'h', 3600 * second_ns},
                         {'d', 86400 * second_ns},
                         {'w', 86400 * second_ns * 7}};
constexpr Unit sizes[] = {{'K', uint64_t{1} << 10},
                          {'M', uint64_t{1} << 20},
                          {'G', uint64_t{1} << 30},
                          {'T', uint64_t{1} << 40}};

std::optional<uint64_t> whole_number(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// "30d": a whole number and a unit.
std::optional<uint64_t> in_units(std::string_view word, std::span<const Unit> units) {
  if (word.empty()) return std::nullopt;
  for (const auto& [letter, size] : units) {
    if (word.back() != letter) continue;
    const auto number = whole_number(word.substr(0, word.size() - 1));
    uint64_t product = 0;
    if (!number || __builtin_mul_overflow(*number, size, &product) || product > INT64_MAX)
      return std::nullopt;
    return product;
  }
  return std::nullopt;
}

// Takes from the front what is written as RFC 3339 has it.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  std::optional<uint64_t> run() {
    using namespace std::chrono;
    const int y = digits(4);
    take('-');
    const int m = digits(2);
    take('-');
    const int d = digits(2);
    const year_month_day day(year(y), month(static_cast<unsigned>(m)),
                             std::chrono::day(static_cast<unsigned>(d)));
    int64_t of_day = 0;
    uint64_t fraction_ns = 0;
    if (good_ && !text_.empty()) {
      if (!take_if('T') && !take_if('t')) take(' ');
      const int hour = digits(2, 23);
      take(':');
      const int minute = digits(2, 59);
      take(':');
      of_day = hour * 3600 + minute * 60 + digits(2, 60);
      if (take_if('.')) fraction_ns = fraction();
      of_day -= offset();
    }
    if (!good_ || !text_.empty() || !day.ok()) return std::nullopt;
    const int64_t seconds = sys_days(day).time_since_epoch().count() * int64_t{86400} + of_day;
    constexpr auto most = static_cast<int64_t>(INT64_MAX / second_ns);
    if (seconds < 0 || seconds >= most) return std::nullopt;
    return static_cast<uint64_t>(seconds) * second_ns + fraction_ns;
  }

 private:
  int digits(size_t count, int most = 9999) {
    const auto number = text_.size() < count ? std::nullopt : whole_number(text_.substr(0, count));
    good_ = good_ && number && *number <= static_cast<uint64_t>(most);
    if (!good_) return 0;
    text_.remove_prefix(count);
    return static_cast<int>(*number);
  }

  bool take_if(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void take(char c) { good_ = take_if(c) && good_; }

  uint64_t fraction() {
    uint64_t ns = 0;
    uint64_t unit = second_ns / 10;
    size_t count = 0;
    for (; count < text_.size() && text_[count] >= '0' && text_[count] <= '9'; ++count) {
      ns += static_cast<uint64_t>(text_[count] - '0') * unit;
      unit /= 10;
    }
    good_ = good_ && count > 0;
    text_.remove_prefix(count);
    return ns;
  }

  // Of the time zone, in seconds.
  int offset() {
    if (take_if('Z') || take_if('z')) return 0;
    const bool west = take_if('-');
    if (!west) take('+');
    const int hours = digits(2, 23);
    take(':');
    const int seconds = hours * 3600 + digits(2, 59) * 60;
    return west ? -seconds : seconds;
  }

  std::string_view text_;
  bool good_ = true;
};

}  // namespace

Result<uint64_t> parse_age(std::string_view word) {
  if (const auto age = in_units(word, ages)) return *age;
  return fail(std::string(word) + " is no age; write 90s, 15m, 1h, 30d or 2w");
}

Result<uint64_t> parse_moment(std::string_view word, uint64_t now_unix_ns) {
  if (const auto age = in_units(word, ages)) return now_unix_ns - std::min(*age, now_unix_ns);
  if (const auto date = DateReader(word).run()) return *date;
  return fail(std::string(word) +
              " is no time; write how long ago (15m, 1h, 30d), or 2026-11-30T03:13:07Z");
}

Result<uint64_t> parse_bytes(std::string_view word) {
  if (const auto bytes = in_units(word, sizes)) return *bytes;
  if (const auto bytes = whole_number(word); bytes && *bytes <= INT64_MAX) return *bytes;
  return fail(std::string(word) + " is no size; write 500, 64K, 100M, 2G or 1T");
}

Result<std::map<std::string, std::string>> parse_labels(const std::vector<std::string>& words) {
  std::map<std::string, std::string> labels;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(word + " is no label; write KEY=VALUE");
    if (!labels.try_emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      return fail(word + ": the label " + word.substr(0, equals) + " is given twice");
  }
  return labels;
}

std::string moment_text(uint64_t unix_ns) {
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_ns / second_ns)};
  const auto days = floor<std::chrono::days>(time);
  const year_month_day day(days);
  const hh_mm_ss clock(time - days);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

}  // namespace pkprof
