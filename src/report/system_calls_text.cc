// SPDX-License-Identifier: Apache-2.0
#include "report/system_calls_text.h"

#include <algorithm>
#include <cstring>

#include "report/clean.h"
#include "report/format.h"

namespace pkprof {

namespace {

// "12.3 ms" in a field of a table: "12.3ms".
std::string short_time(uint64_t ns) {
  if (ns == 0) return "-";
  std::string text = duration_text(ns);
  std::erase(text, ' ');
  return text;
}

std::string counted(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string count_or_dash(uint64_t n) {
  return n ? std::to_string(n) : "-";
}

class SystemCallsText {
 public:
  SystemCallsText(const SystemCalls& calls, const ReportOptions& options)
      : calls_(calls), options_(options) {}

  std::string run() {
    head();
    kinds();
    sleeps();
    slowest();
    missing();
    return std::move(out_);
  }

 private:
  static constexpr size_t number_width = 9;

  void line(const std::string& text) { out_ += text + "\n"; }
  [[nodiscard]] std::string named(const std::string& name, size_t width) const {
    return pad_right(fit(clean(name, options_.unicode), width, options_.unicode), width);
  }
  [[nodiscard]] static std::string numbers(const std::vector<std::string>& fields) {
    std::string text;
    for (const std::string& field : fields) text += pad_left(field, number_width);
    return text;
  }
  // Columns that are always there, and more where the terminal is wider.
  [[nodiscard]] std::vector<std::string> first_columns(std::vector<std::string> all,
                                                       size_t name_width) const {
    const size_t room = std::max<size_t>(options_.width, 80) - name_width;
    all.resize(std::min(all.size(), room / number_width));
    return all;
  }

  void head() {
    uint64_t count = 0;
    uint64_t ns = 0;
    for (const CallKind& kind : calls_.kinds) {
      count += kind.count;
      ns += kind.total_ns;
    }
    line(std::to_string(count) + " system calls, " + duration_text(ns) + " in them, in " +
         duration_text(calls_.duration_ns));
    if (!calls_.command.empty())
      line("command: " + fit(clean(calls_.command, options_.unicode),
                             std::max<size_t>(options_.width, 60) - 9, options_.unicode));
    const uint64_t cost = calls_.cost_kernel_ns + calls_.cost_user_ns;
    if (calls_.duration_ns)
      line("pkprof itself: " +
           decimal(100.0 * static_cast<double>(cost) / static_cast<double>(calls_.duration_ns), 2) +
           "% of a CPU, " + duration_text(calls_.cost_kernel_ns) + " in the kernel and " +
           duration_text(calls_.cost_user_ns) + " beside");
  }

  void kinds() {
    if (calls_.kinds.empty()) return;
    constexpr size_t widest = 20;
    size_t width = 4;
    for (const CallKind& kind : calls_.kinds) width = std::max(width, kind.name.size());
    width = std::min(width, widest);
    line("");
    line(options_.style.bold(
        named("CALL", width) +
        numbers(first_columns({"COUNT", "ERRORS", "TOTAL", "MEAN", "P99", "MAX", "BLOCKED",
                               "FAULTS", "ASYNC", "CPU", "P50", "MAJOR", "FORCED", "MOVED"},
                              width))));
    const size_t limit = options_.limit ? options_.limit : calls_.kinds.size();
    for (size_t i = 0; i < std::min(limit, calls_.kinds.size()); ++i) {
      const CallKind& k = calls_.kinds[i];
      line(named(k.name, width) +
           numbers(first_columns(
               {std::to_string(k.count), count_or_dash(k.errors), short_time(k.total_ns),
                short_time(k.total_ns / std::max<uint64_t>(k.count, 1)),
                short_time(std::min(k.durations.percentile_ns(0.99), k.longest_ns)),
                short_time(k.longest_ns), short_time(k.asleep_ns),
                count_or_dash(k.minor_faults + k.major_faults), short_time(k.async_ns),
                short_time(k.cpu_ns()),
                short_time(std::min(k.durations.percentile_ns(0.5), k.longest_ns)),
                count_or_dash(k.major_faults), count_or_dash(k.forced), moved(k.bytes)},
               width)));
    }
    if (calls_.kinds.size() > limit)
      line("(" + std::to_string(calls_.kinds.size() - limit) + " more kinds)");
  }

  [[nodiscard]] static std::string moved(uint64_t bytes) {
    if (!bytes) return "-";
    constexpr const char* units[] = {"B", "K", "M", "G", "T"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return decimal(value, unit && value < 10 ? 1 : 0) + units[unit];
  }

  [[nodiscard]] std::string where(const SleepPlace& s) const {
    std::string text = s.place.empty() ? "a place without a name" : s.place;
    const std::string inside = s.inside.substr(0, s.inside.find('+'));
    if (!inside.empty() && inside != "schedule") text += " (" + inside + ")";
    return clean(text, options_.unicode);
  }

  void sleeps() {
    if (calls_.sleeps.empty()) return;
    constexpr size_t call_width = 14;
    line("");
    line(options_.style.bold(numbers({"TOTAL", "COUNT", "LONGEST", "WAITERS"}) + "  " +
                             named("CALL", call_width) + "SLEPT IN"));
    const size_t limit = options_.limit ? options_.limit : 20;
    for (size_t i = 0; i < std::min(limit, calls_.sleeps.size()); ++i) {
      const SleepPlace& s = calls_.sleeps[i];
      const std::string waiters =
          s.waiters_known
              ? decimal(static_cast<double>(s.waiters) / static_cast<double>(s.waiters_known), 1)
              : "?";
      const size_t left = std::max<size_t>(options_.width, 80) - 4 * number_width - 2 - call_width;
      line(numbers({short_time(s.total_ns), std::to_string(s.count), short_time(s.longest_ns),
                    waiters}) +
           "  " + named(s.call, call_width) + fit(where(s), left, options_.unicode));
      wakers(s);
    }
    if (calls_.sleeps.size() > limit)
      line("(" + std::to_string(calls_.sleeps.size() - limit) + " more places)");
  }

  [[nodiscard]] std::string waker(const Waker& w) const {
    std::string text = std::to_string(w.count) + " by ";
    if (w.context == DEBOX_BY_PROCESS || w.context == DEBOX_BY_KTHREAD)
      return text + (w.comm.empty() ? "?" : clean(w.comm, options_.unicode)) + " (" +
             std::to_string(w.pid) + ")";
    return text + context_name(w.context);
  }

  void wakers(const SleepPlace& s) {
    constexpr size_t most = 3;
    if (s.wakers.empty()) return;
    std::string text;
    for (size_t i = 0; i < std::min(most, s.wakers.size()); ++i)
      text += (i ? ", " : "") + waker(s.wakers[i]);
    if (s.wakers.size() > most) text += ", " + std::to_string(s.wakers.size() - most) + " others";
    const size_t indent = 4 * number_width + 2;
    line(std::string(indent, ' ') +
         options_.style.dim(fit("woken " + text, std::max<size_t>(options_.width, 80) - indent,
                                options_.unicode)));
  }

  [[nodiscard]] std::string place(uint32_t number) const {
    const auto it = calls_.places.find(number);
    return it == calls_.places.end() || it->second.empty() ? "place " + std::to_string(number)
                                                           : clean(it->second, options_.unicode);
  }

  void slowest() {
    if (calls_.slowest.empty()) return;
    line("");
    line(options_.style.bold("Slowest calls"));
    for (const debox_record& r : calls_.slowest) record(r);
  }

  void record(const debox_record& r) {
    std::string text = pad_left(short_time(r.wall_ns), number_width) + "  " +
                       clean(calls_.name_of(r), options_.unicode) + " = ";
    if (r.result < 0 && r.result >= -4095)
      text += std::string("-1 ") + strerrorname_np(static_cast<int>(-r.result));
    else
      text += std::to_string(r.result);
    text += "  thread " + std::to_string(r.tid);
    std::string rest;
    const auto say = [&rest](uint64_t what, const std::string& name) {
      if (what) rest += ", " + name;
    };
    say(r.asleep_ns, "asleep " + duration_text(r.asleep_ns));
    say(r.runnable_ns, "waiting for a CPU " + duration_text(r.runnable_ns));
    say(r.async_ns, "elsewhere " + duration_text(r.async_ns));
    say(r.minor_faults, counted(r.minor_faults, "minor fault"));
    say(r.major_faults, counted(r.major_faults, "major fault"));
    say(r.forced, counted(r.forced, "preemption"));
    say(r.migrations, counted(r.migrations, "migration"));
    say(r.restarts, counted(r.restarts, "restart"));
    say(r.signals, counted(r.signals, "signal"));
    line(fit(text + rest, std::max<size_t>(options_.width, 80), options_.unicode));
    for (uint32_t i = 0; i < std::min<uint32_t>(r.sleeps, DEBOX_SLEEPS); ++i) {
      const debox_sleep& s = r.sleep[i];
      line(fit(std::string(number_width + 4, ' ') + std::to_string(s.count) + "x " +
                   duration_text(s.total_ns) + " in " + place(s.place),
               std::max<size_t>(options_.width, 80), options_.unicode));
    }
  }

  void missing() {
    if (calls_.degraded.empty()) return;
    line("");
    line(options_.style.bold("Incomplete"));
    for (const std::string& sentence : calls_.degraded)
      line("  - " + options_.style.warning(clean(sentence, options_.unicode)));
  }

  const SystemCalls& calls_;
  const ReportOptions& options_;
  std::string out_;
};

}  // namespace

std::string system_calls_text(const SystemCalls& calls, const ReportOptions& options) {
  return SystemCallsText(calls, options).run();
}

}  // namespace pkprof
