// SPDX-License-Identifier: Apache-2.0
#include "report/diff/diff_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/merge.h"
#include "report/clean.h"
#include "report/format.h"

namespace pkprof {
namespace {

constexpr size_t usual_rows = 15;
constexpr size_t numbers_width = 32;
constexpr double least = 0.0005;  // of a CPU: less would read 0.0

std::string share(double of_a_cpu) {
  return decimal(100 * of_a_cpu, 1);
}

// "+2.0", "-0.3"; of nothing, "-".
std::string change(double of_a_cpu) {
  const std::string text = share(of_a_cpu);
  if (text == "0.0" || text == "-0.0") return "-";
  return of_a_cpu > 0 ? "+" + text : text;
}

class DiffText {
 public:
  DiffText(const Profile& a, const Profile& b, const ReportOptions& options)
      : options_(options),
        of_(resource_of(b)),
        diff_(diff_profiles(a, b, options.by, options.pids)),
        limit_(options.limit ? options.limit : usual_rows) {}

  std::string run(const Profile& a, const std::string& name_a, const Profile& b,
                  const std::string& name_b) {
    line(options_.style.bold("What got dearer, what cheaper?"));
    about("A", a, name_a);
    about("B", b, name_b);
    line("");
    rows();
    sources();
    functions();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += text + "\n"; }

  void about(const char* which, const Profile& profile, const std::string& name) {
    const Meta& meta = profile.meta;
    const std::string facts = clean(meta.kernel, options_.unicode) + ", " +
                              std::to_string(meta.cpus) + (meta.cpus == 1 ? " CPU, " : " CPUs, ") +
                              duration_text(meta.duration_ns) + frequency_text(meta);
    line(std::string("  ") + which + "  " +
         fit(clean(name, options_.unicode) + "  " + facts, options_.width - 5, options_.unicode));
    if (const std::string watched = watched_text(watched_share(meta)); !watched.empty())
      line("     " + watched);
  }

  [[nodiscard]] const char* plus_minus() const { return options_.unicode ? "±" : "+-"; }

  // "    68.2    95.1    +26.9 ±1.2 "
  // numbers_width columns, or more where there are hundreds of CPUs.
  [[nodiscard]] std::string numbers(const DiffValue& value) const {
    return pad_left(share(value.a), 8) + pad_left(share(value.b), 8) +
           pad_left(change(value.change()), 9) + " " +
           pad_right(plus_minus() + share(value.margin()), 5) + " ";
  }

  static bool is_shown(const DiffValue& value) {
    return value.is_sure() && std::abs(value.change()) >= least;
  }

  // Those that are sure to have changed, and how many others there are.
  template <typename Row, typename ValueOf, typename Print>
  void table(const std::vector<Row>& rows, ValueOf value_of, Print print) {
    size_t shown = 0;
    size_t more = 0;
    size_t by_chance = 0;
    for (const Row& row : rows) {
      const DiffValue& value = value_of(row);
      if (!is_shown(value))
        by_chance += std::abs(value.change()) >= least;
      else if (shown == limit_)
        ++more;
      else {
        print(row);
        ++shown;
      }
    }
    if (!shown) line("  nothing has changed that may not be chance");
    std::string rest;
    if (more) rest = std::to_string(more) + " more";
    if (by_chance)
      rest += (rest.empty() ? "" : ", ") + std::to_string(by_chance) + " that may be chance";
    if (!rest.empty()) line(options_.style.dim("  (" + rest + ")"));
    line("");
  }

  void rows() {
    std::string title(to_string(options_.by));
    for (char& c : title) c = static_cast<char>(std::toupper(c));
    const size_t width = std::clamp<size_t>(options_.width - 65, 12, 40);
    const bool of_cpu = of_ == Resource::cpu;
    line(pad_right(title, width) + "       A       B   CHANGE" +
         (of_cpu ? "          USER     OWN   ASYNC  STOLEN" : ""));
    table(
        diff_.rows, [](const DiffRow& row) -> const DiffValue& { return row.costs; },
        [&](const DiffRow& row) {
          std::string text =
              pad_right(fit(clean(row.name, options_.unicode), width, options_.unicode), width) +
              numbers(row.costs);
          if (row.kind != GroupKind::special && of_cpu)
            for (const DiffValue* part : {&row.user, &row.own, &row.async, &row.stolen})
              text += pad_left(change(part->change()), 8);
          line(text);
        });
    if (of_cpu)
      line(options_.style.dim(
          "  % of one CPU, of what was done for them. STOLEN: on the CPU while the kernel"));
    const char* const unit = of_cpu             ? "  served another. "
                             : is_in_bytes(of_) ? "  100 is 1 GB a second. "
                                                : "  100 is one thread, all the time. ";
    line(options_.style.dim(std::string(unit) + plus_minus() +
                            ": what chance does to the change, in 95 of 100 cases."));
    line("");
  }

  // Right of the numbers: a name, and what belongs to it.
  void named(const DiffValue& value, const std::string& name, size_t width,
             const std::string& more) {
    const auto fitted = [&](const std::string& text, size_t columns) {
      return fit(text, columns, options_.unicode);
    };
    const size_t left = options_.width - numbers_width;
    line(numbers(value) + pad_right(fitted(name, width), width) + "  " +
         fitted(more, left - width - 2));
  }

  void sources() {
    line(options_.style.bold("By what the kernel did"));
    line("       A       B   CHANGE         FOR               SOURCE");
    table(
        diff_.sources, [](const DiffSource& source) -> const DiffValue& { return source.time; },
        [&](const DiffSource& source) {
          named(source.time, clean(source.name, options_.unicode), 16,
                clean(source.source, options_.unicode));
        });
  }

  void functions() {
    const size_t width = options_.width - numbers_width - 14;
    line(options_.style.bold("By function, itself"));
    line("       A       B   CHANGE         " + pad_right("FUNCTION", width) + "  WHERE");
    table(
        diff_.functions, [](const DiffFunction& f) -> const DiffValue& { return f.self; },
        [&](const DiffFunction& f) {
          named(f.self, function_title(f.function, options_.unicode), width,
                clean(f.function.where, options_.unicode));
        });
  }

  const ReportOptions& options_;
  const Resource of_;
  const Diff diff_;
  const size_t limit_;
  std::string out_;
};

}  // namespace

std::string diff_text(const Profile& a, const std::string& name_a, const Profile& b,
                      const std::string& name_b, const ReportOptions& options) {
  return DiffText(a, b, options).run(a, name_a, b, name_b);
}

}  // namespace pkprof
