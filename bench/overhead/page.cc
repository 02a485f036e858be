// SPDX-License-Identifier: Apache-2.0
#include "page.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "paper.h"
#include "summary.h"
#include "table.h"
#include "targets.h"

namespace pkprof::overhead {
namespace {

constexpr int kOurFrequency = 997;  // that the targets are set at, and that stands beside 1996

// Cells may come from a log that anybody made: nothing in them may end a cell or begin markup.
std::string clean(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else {
      if (c == '|') out += '\\';
      out += c;
    }
  }
  return out;
}

// Between backquotes nothing is markup, but a bar still ends a cell.
std::string code(const std::string& text) {
  std::string out = "`";
  for (const char c : text) {
    if (c == '|') out += '\\';
    if (c != '`') out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "`";
}

std::string row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  return out + "\n";
}

std::string header(const std::vector<std::string>& cells) {
  std::string out = row(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) out += "---|";
  return out + "\n";
}

std::string cell(const std::optional<Spread>& s) {
  if (!s) return "–";
  return three_places(s->median) + " (" + three_places(s->low) + "–" + three_places(s->high) + ")";
}

std::string number(double value) {
  std::array<char, 40> text = {};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

// "0.012 under", "0.003 over".
std::string gap_text(const Gap& gap) {
  const auto one = [](double d) {
    std::string text = three_places(d);
    return text == "-0.000" ? std::string("0.000") : text;
  };
  return one(gap.median) + " (" + one(gap.from) + " to " + one(gap.to) + ")";
}

// "1 round", "3 runs of 1 to 6 rounds".
std::string rounds_text(const std::vector<int>& rounds) {
  const auto [least, most] = std::ranges::minmax(rounds);
  std::string out = rounds.size() == 1 ? "" : std::to_string(rounds.size()) + " runs of ";
  if (least != most) out += std::to_string(least) + " to ";
  return out + std::to_string(most) + (most == 1 ? " round" : " rounds");
}

// Runs that differ in nothing but how many rounds they have are told in one line.
std::string runs_text(const std::vector<Run>& runs, const Summary& summary) {
  struct Kind {
    std::string where;
    std::string how;
    std::vector<int> rounds;
  };
  std::vector<Kind> kinds;
  for (const Run& run : runs) {
    const RunInfo& i = run.info;
    std::string where = clean(i.date) + ": Linux " + clean(i.kernel) + ", " +
                        std::to_string(i.cpus) + " CPUs (" + clean(i.cpu) + "), " +
                        std::to_string(i.memory_mb) + " MiB";
    std::string how =
        "slices of " + number(i.seconds) + " s" +
        (i.lead > 0 ? " after " + number(i.lead) + " s of the load" : "") +
        (i.settle > 0 ? " and " + number(i.settle) + " s of the profiler's sampling" : "") +
        (i.turns > 0 ? ", " + std::to_string(i.turns) + " turns a round" : "") +
        (i.awake ? "; idle CPUs do not halt" : "; idle CPUs halt");
    for (const std::string& tool : i.tools) how += "; " + clean(tool);
    int rounds = 0;
    for (const Slice& s : run.slices)
      if (s.variant != kPlain) rounds = std::max(rounds, s.round);
    if (!rounds) continue;  // interrupted before the first was over
    const auto same = std::ranges::find_if(
        kinds, [&](const Kind& k) { return k.where == where && k.how == how; });
    if (same != kinds.end()) {
      same->rounds.push_back(rounds);
    } else {
      kinds.push_back({std::move(where), std::move(how), {rounds}});
    }
  }
  std::string out;
  for (const Kind& k : kinds)
    out += "- " + k.where + "; " + rounds_text(k.rounds) + "; " + k.how + ".\n";
  std::string frequencies;
  for (const int hz : summary.frequencies()) {
    frequencies += (frequencies.empty() ? "" : ", ") + std::to_string(hz);
  }
  return out + "\nSamples per second and CPU: " + frequencies + ".\n";
}

// Of variants that are there to find out what the others cost.
std::string diagnostics_text(const std::vector<Run>& runs) {
  std::string out;
  for (const VariantInfo& v : variants_of(runs)) {
    if (v.name == "wait")
      out +=
          " *wait* does nothing, either, but takes 25 us for it, as long as a sample of a kernel "
          "stack takes where the workload has filled the caches: what it costs to be interrupted "
          "for so long, whatever is done meanwhile.";
  }
  return out;
}

// One row a workload, one column a profiler.
std::string ratios_text(const std::vector<Run>& runs, const Summary& summary, int hz) {
  const auto variants = variants_of(runs);
  std::vector<std::string> names = {"workload", "without"};
  for (const VariantInfo& v : variants) {
    names.push_back(v.name == kPlain ? "noise" : clean(v.name));
  }
  std::string out = header(names);
  for (const WorkloadInfo& w : workloads_of(runs)) {
    const auto plain = summary.plain(w.name);
    if (!plain) continue;
    std::vector<std::string> cells = {clean(w.title),
                                      rate_text(plain->median) + " " + clean(w.unit)};
    for (const VariantInfo& v : variants) cells.push_back(cell(summary.ratio(w.name, hz, v.name)));
    out += row(cells);
  }
  return out;
}

std::string targets_text(const std::vector<Run>& runs, const Summary& summary, int hz) {
  std::string out = header({"workload", "", "under", "by", "turns", "at most", ""});
  bool any = false;
  for (const WorkloadInfo& w : workloads_of(runs)) {
    for (const Target& t : targets_for(w.name)) {
      const auto gap = summary.under(w.name, hz, t.variant, t.reference);
      if (!gap) continue;
      any = true;
      std::array<char, 20> limit = {};
      std::snprintf(limit.data(), limit.size(), "%.2f", t.limit);
      out += row({clean(w.title), t.variant, t.reference, gap_text(*gap),
                  std::to_string(gap->turns), limit.data(), verdict(t, *gap)});
    }
  }
  return any ? out : "";
}

std::string paper_text(const Summary& summary) {
  const auto ours = [&](const PaperFigure& figure, const char* variant) {
    const auto s = summary.ratio(figure.workload, kOurFrequency, variant);
    return s ? three_places(s->median) : std::string("–");
  };
  std::string out = header({"1996", "their KPROF", "their PKPROF", "our bare sampler", "our pkprof",
                            "our pkprof, --budget 100", "remark"});
  for (const PaperFigure& f : kPaperFigures) {
    out += row({std::string(f.measured) + " (" + f.table + ")", f.kprof, f.pkprof, ours(f, "bare"),
                ours(f, "pkprof"), ours(f, "pkprof-100"), f.remark});
  }
  return out;
}

std::string missing_text(const std::vector<Run>& runs) {
  std::string out;
  std::map<std::string, std::pair<int, std::string>> failed;
  for (const Run& run : runs) {
    for (const Skip& skip : run.skipped) {
      out += "- " + code(skip.name) + " was skipped: " + clean(skip.why) + "\n";
    }
    for (const Failure& f : run.failures) {
      auto& [count, why] = failed[code(f.slice.workload) + " with " + code(f.slice.variant)];
      ++count;
      why = f.why;
    }
  }
  for (const auto& [where, what] : failed) {
    out += "- " + where + ": " + std::to_string(what.first) +
           " slices failed; the last: " + clean(what.second) + "\n";
  }
  return out.empty() ? "Nothing was skipped, and nothing failed.\n" : out;
}

std::string legend_text(const std::vector<Run>& runs) {
  std::string out = header({"workload", "what it does"});
  for (const WorkloadInfo& w : workloads_of(runs)) out += row({clean(w.title), clean(w.what)});
  out += "\n" + header({"profiler", "command"});
  for (const VariantInfo& v : variants_of(runs)) {
    out += row({clean(v.name), v.command.empty() ? "none" : code(v.command)});
  }
  return out;
}

}  // namespace

std::string page_text(const std::vector<Run>& runs) {
  const Summary summary(runs);
  std::string out =
      "# What profiling costs\n\n"
      "<!-- Made from a log of measurements by `overhead --page LOG`: do not edit. -->\n\n"
      "The throughput of workloads under pkprof, and under others at the same frequency, as a "
      "ratio to their throughput under none. How to measure it on a machine of your own: "
      "`bench/README.md`. Words: [GLOSSARY](GLOSSARY.md).\n\n" +
      runs_text(runs, summary) +
      "\nA load is started, and while it goes on the profilers are started over it, sample for a "
      "while and are turned off: `pkprof record` by its `--control`, which takes its hooks out, "
      "and all of them by disabling their events of perf's. Then each has its turns, in an "
      "order that rotates: it is turned on, has a slice of the time, and is turned off; between "
      "any two are slices under none. So all that is compared had the same load, tenths of a "
      "second apart. (Loads that map files all the time, fork + exec and the compile-like one, "
      "pay for `perf record` also while it is off, since it wants to hear of mappings: there it "
      "is started for each of its turns and ended after it, after the others' turns, with "
      "slices of a second, seconds apart.) A slice counts as its ratio to the mean of the "
      "slices under none next to it. Each figure is the median over turns, with the quartiles "
      "in brackets. *noise* is the same for a slice under none, compared with those before and "
      "after it: differences between single slices that are smaller mean nothing. Not in a "
      "slice is what a profiler's process does as it is turned off: pkprof reads its tables "
      "then. Where CPUs do not halt (`/dev/cpu_dma_latency` is 0 for as long as a load goes on, "
      "but for one workload) that is for the sake of virtual machines: to wake a CPU takes "
      "longer there than to answer a request, and less long where timer interrupts come often, "
      "so what would be measured is that. "
      "*bare* is an empty program on the same clock: what sampling itself costs here, in timer "
      "interrupts above all." +
      diagnostics_text(runs) + "\n";
  for (const int hz : summary.frequencies()) {
    out += "\n## At " + std::to_string(hz) + " Hz\n\n" + ratios_text(runs, summary, hz);
  }
  out +=
      "\n## What we hold ourselves to\n\n"
      "At 997 Hz pkprof's throughput, with everything on, may be at most 0.01 under that of `perf "
      "record -a -g`, and 0.02 in the UDP flood, where hooks run most. Differences are taken turn "
      "by "
      "turn; in brackets where their median lies with 95 % confidence, and \"not certain\" where "
      "the limit lies in there, too. Less than zero: pkprof was the faster. Of fewer than six "
      "turns nothing can be said with that confidence.\n";
  for (const int hz : summary.frequencies()) {
    const std::string table = targets_text(runs, summary, hz);
    if (!table.empty()) out += "\n### " + std::to_string(hz) + " Hz\n\n" + table;
  }
  out +=
      "\n## Beside 1996\n\n" + std::string(kPaper) + ". Ours at " + std::to_string(kOurFrequency) +
      " Hz.\n\n" + paper_text(summary) +
      "\nThe figures of 1996 are as the paper's text sums up its tables. Its profilers, KPROF and "
      "PKPROF, had every kernel function call a monitor, as gprof does, and so counted calls; "
      "pkprof samples: not the same kind of cost.\n" +
      "\n## What is not in it\n\n" + missing_text(runs) +
      "\nA profiler's own user code runs on whichever CPU is free: workloads that leave a CPU "
      "idle do not pay for it. Where there is no hardware counter `perf record` samples on the "
      "same clock as pkprof.\n" +
      "\n## What was run\n\n" + legend_text(runs);
  return out;
}

}  // namespace pkprof::overhead
