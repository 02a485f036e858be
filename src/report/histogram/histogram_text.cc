// SPDX-License-Identifier: Apache-2.0
#include "report/histogram/histogram_text.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"

namespace pkprof {

namespace {

std::string hex(uint64_t value, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*" PRIx64, digits, value);
  return text;
}

int digits_of(uint64_t value) {
  return std::max(4, static_cast<int>(hex(value).size()));
}

// "07": whole percent, as the paper has them.
std::string whole_percent(uint64_t part, uint64_t whole) {
  const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  char text[16];
  std::snprintf(text, sizeof text, "%02.0f", 100 * share);
  return text;
}

std::string in_parentheses(const std::string& percent, size_t width) {
  return pad_right("(" + percent + "%)", width + 3);
}

std::string bar_of(uint64_t ns, uint64_t longest, size_t width) {
  if (ns == 0) return "";
  const double share = static_cast<double>(ns) / static_cast<double>(longest);
  const auto stars = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  return stars == 0 ? "." : std::string(stars, '*');
}

// As many as there is room for, and how many more there are.
std::string symbols_of(const HistogramRow& row, size_t width, bool unicode) {
  std::string text;
  for (size_t i = 0; i < row.symbols.size(); ++i) {
    const HistogramSymbol& symbol = row.symbols[i];
    const std::string name = clean(symbol.name, unicode);
    const std::string offset = symbol.offset ? "+0x" + hex(symbol.offset) : "";
    const size_t left = row.symbols.size() - i - 1;
    const std::string more = left ? " +" + std::to_string(left) : "";
    const std::string before = text.empty() ? "" : ", ";
    const size_t taken = display_width(text) + before.size() + offset.size() + more.size();
    const size_t room = taken < width ? width - taken : 0;
    if (display_width(name) > room) {
      // The first one is cut, what does not fit after it is counted.
      if (i > 0) return text + " +" + std::to_string(row.symbols.size() - i);
      return fit(name, room, unicode).append(offset).append(more);
    }
    text.append(before).append(name).append(offset);
  }
  return text;
}

std::string title_of(const HistogramElsewhere& e, const Histogram& histogram, bool unicode) {
  using enum HistogramElsewhere::Kind;
  switch (e.kind) {
    case outside:
      return clean(histogram.file, unicode) + ", outside of the range";
    case file:
      return clean(e.name, unicode);
    case memory:
      return e.name.empty() ? "memory that is not known"
                            : clean(e.name, unicode) + ", without addresses of its own";
    case no_address:
      return "the kernel, from an address that is not known";
    case system_calls:
      return "the kernel: system calls";
    case kernel:
      return "the kernel: faults and interrupts";
    case asynchronous:
      return "the kernel, for it, elsewhere";
  }
  return "?";
}

std::string total_line(const Profile& profile, const Histogram& h) {
  const Meta& meta = profile.meta;
  std::string line = std::to_string(h.all.samples) + " samples";
  line += frequency_text(meta);
  line += ", " + duration_text(h.all.ns);
  if (h.all.ns)
    line += ": " + percent(h.here.ns, h.all.ns) + "% above, " +
            percent(h.all.ns - h.here.ns, h.all.ns) + "% elsewhere";
  return line;
}

}  // namespace

std::string histogram_text(const Profile& profile, const Histogram& h,
                           const ReportOptions& options) {
  uint64_t longest = 0;
  for (const HistogramRow& row : h.rows) longest = std::max(longest, row.value.ns);
  const int digits = h.rows.empty() ? 4 : digits_of(h.rows.back().last);
  const size_t address_width = static_cast<size_t>(digits) * 2 + 1;
  size_t percent_width = whole_percent(longest, h.all.ns).size();
  for (const HistogramElsewhere& e : h.elsewhere)
    percent_width = std::max(percent_width, whole_percent(e.value.ns, h.all.ns).size());
  const size_t head = address_width + 1 + percent_width + 3 + 3;
  const size_t width = std::max<size_t>(options.width, 60);
  const size_t bar_width = std::max<size_t>(10, (width - std::min(head, width)) / 2);
  const size_t symbol_width =
      width > head + bar_width + 2 ? std::max<size_t>(width - head - bar_width - 2, 8) : 8;

  std::string out =
      options.style.bold(fit_tail(clean(h.file, options.unicode), width, options.unicode)) +
      "\n0%.....";
  out += (longest ? whole_percent(longest, h.all.ns) : "0") + "%\n";
  for (const HistogramRow& row : h.rows) {
    const std::string bar = bar_of(row.value.ns, longest, bar_width);
    std::string line = hex(row.first, digits) + "-" + hex(row.last, digits) + " " +
                       in_parentheses(whole_percent(row.value.ns, h.all.ns), percent_width) +
                       " : " + pad_right(bar, bar_width) + "  " +
                       symbols_of(row, symbol_width, options.unicode);
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  std::string label = "elsewhere";
  for (const HistogramElsewhere& e : h.elsewhere) {
    const std::string title = title_of(e, h, options.unicode);
    out += pad_right(label, address_width) + " " +
           in_parentheses(whole_percent(e.value.ns, h.all.ns), percent_width) + " : " +
           fit_tail(title, width - std::min(head, width - 8), options.unicode) + "\n";
    label.clear();
  }
  out += options.style.dim(total_line(profile, h)) + "\n";
  if (const std::string watched = watched_text(watched_share(profile.meta)); !watched.empty())
    out += options.style.dim(watched) + "\n";
  for (const std::string& sentence : degraded_sentences(profile))
    out += options.style.warning("  " + clean(sentence, options.unicode)) + "\n";
  return out;
}

}  // namespace pkprof
