// SPDX-License-Identifier: Apache-2.0
#include "report/system_calls_text.h"

#include <algorithm>
#include <array>
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
      : calls_(calls), options_(options), width_(std::max<size_t>(options.width, 80)) {}

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
  static constexpr size_t deeper = number_width + 4;  // what belongs to a call

  void line(const std::string& text) { out_ += text + "\n"; }
  [[nodiscard]] std::string named(const std::string& name, size_t width) const {
    return pad_right(fit(clean(name, options_.unicode), width, options_.unicode), width);
  }
  [[nodiscard]] static std::string numbers(const std::vector<std::string>& fields) {
    std::string text;
    for (const std::string& field : fields) text += pad_left(field, number_width);
    return text;
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
    constexpr size_t widest = 17;
    size_t width = 4;
    for (const CallKind& kind : calls_.kinds) width = std::max(width, kind.name.size());
    width = std::min(width, widest);
    // As many columns at a time as there is room for.
    const size_t at_once = (width_ - width) / number_width;
    for (size_t from = 0; from < columns.size(); from += at_once)
      kinds(width, from, std::min(from + at_once, columns.size()));
  }

  static constexpr std::array columns = {"COUNT", "ERRORS", "TOTAL",  "MEAN",    "P50",
                                         "P99",   "MAX",    "CPU",    "BLOCKED", "FAULTS",
                                         "ASYNC", "MAJOR",  "FORCED", "MOVED"};

  [[nodiscard]] static std::array<std::string, columns.size()> fields(const CallKind& k) {
    return {std::to_string(k.count),
            count_or_dash(k.errors),
            short_time(k.total_ns),
            short_time(k.total_ns / std::max<uint64_t>(k.count, 1)),
            short_time(std::min(k.durations.percentile_ns(0.5), k.longest_ns)),
            short_time(std::min(k.durations.percentile_ns(0.99), k.longest_ns)),
            short_time(k.longest_ns),
            short_time(k.cpu_ns()),
            short_time(k.asleep_ns),
            count_or_dash(k.minor_faults + k.major_faults),
            short_time(k.async_ns),
            count_or_dash(k.major_faults),
            count_or_dash(k.forced),
            moved(k.bytes)};
  }

  void kinds(size_t width, size_t from, size_t end) {
    std::string head = named("CALL", width);
    for (size_t i = from; i < end; ++i) head += pad_left(columns[i], number_width);
    line("");
    line(options_.style.bold(head));
    const size_t limit = options_.limit ? options_.limit : calls_.kinds.size();
    for (size_t i = 0; i < std::min(limit, calls_.kinds.size()); ++i) {
      const auto all = fields(calls_.kinds[i]);
      std::string text = named(calls_.kinds[i].name, width);
      for (size_t column = from; column < end; ++column)
        text += pad_left(all[column], number_width);
      line(text);
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
      const size_t left = width_ - 4 * number_width - 2 - call_width;
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
         options_.style.dim(fit("woken " + text, width_ - indent, options_.unicode)));
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
    for (const SlowCall& slow : calls_.slowest) {
      record(slow.record);
      trace(slow);
      for (const std::string& frame : slow.frames)
        line(fit(std::string(deeper, ' ') + "from " + clean(frame, options_.unicode), width_,
                 options_.unicode));
    }
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
    line(fit(text + rest, width_, options_.unicode));
    for (uint32_t i = 0; i < std::min<uint32_t>(r.sleeps, DEBOX_SLEEPS); ++i) {
      const debox_sleep& s = r.sleep[i];
      line(fit(std::string(deeper, ' ') + std::to_string(s.count) + "x " +
                   duration_text(s.total_ns) + " in " + place(s.place),
               width_, options_.unicode));
    }
  }

  // "  1.2 ms  vfs_read", the deeper the further in.
  void trace(const SlowCall& slow) {
    for (const debox_trace& t : slow.trace) {
      const std::string time = t.wall_ns ? short_time(t.wall_ns) : "?";
      const size_t depth = std::min<size_t>(t.depth, 30);
      line(fit(std::string(deeper, ' ') + pad_left(time, number_width) + "  " +
                   std::string(2 * depth, ' ') + place(t.function),
               width_, options_.unicode));
    }
    if (slow.record.traces_left_out)
      line(std::string(deeper, ' ') + "(" + counted(slow.record.traces_left_out, "call") +
           " of functions left out)");
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
  const size_t width_;
  std::string out_;
};

}  // namespace

std::string system_calls_text(const SystemCalls& calls, const ReportOptions& options) {
  return SystemCallsText(calls, options).run();
}

}  // namespace pkprof
