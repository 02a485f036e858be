// SPDX-License-Identifier: Apache-2.0
// pkprof report.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/file.h"
#include "model/merge.h"
#include "model/pprof/pprof.h"
#include "report/clients.h"
#include "report/histogram/address_range.h"
#include "report/histogram/histogram_json.h"
#include "report/histogram/histogram_text.h"
#include "report/page/page.h"
#include "report/view.h"

// One line a view, in the order of the help. What it is, its own file says: as NAME_view.
// clang-format off
#define EACH_VIEW(view) \
  view(ledger) \
  view(flat) \
  view(graph) \
  view(tree) \
  view(calls) \
  view(clients) \
  view(waits) \
  view(usage)
// clang-format on

namespace pkprof {

#define DECLARED(name) extern const ReportView name##_view;
EACH_VIEW(DECLARED)

namespace {

constexpr size_t most_bars = 1'000'000;

// But for the histogram, which has options of its own.
#define LISTED(name) &name##_view,
constexpr std::array views = {EACH_VIEW(LISTED)};

int show_histogram(const ReportChoice& o, const Profile& profile, const ReportOptions& r) {
  HistogramOptions how = o.histogram;
  how.pids = o.pids;
  if (o.rows != rows_not_given) how.rows = o.rows;
  const auto histogram = histogram_of(profile, how);
  if (!histogram) return complain(histogram.error().message, exit_failure);
  const std::string text =
      o.json ? histogram_json(profile, *histogram) : histogram_text(profile, *histogram, r);
  return print(text) ? 0 : exit_failure;
}

// What is wrong with the options together; "" when nothing is.
std::string disagreement(const ReportChoice& o, By by) {
  const HistogramOptions& h = o.histogram;
  if (o.view != "histogram" && (!h.range.empty() || !h.library.empty() || h.kernel))
    return "-r, --library and --kernel are for --view histogram";
  if (o.view == "histogram" && by != By::pid)
    return "--by is not for the histogram: addresses are not of one process";
  if (o.view == "histogram" && o.rows != rows_not_given && o.rows > most_bars)
    return "-n: a histogram has at most " + std::to_string(most_bars) + " rows";
  if (o.open && o.html.empty()) return "--open shows the page that --html FILE writes: give both";
  if (!o.html.empty() && (o.json || !o.by.empty() || !o.pids.empty() || o.rows != rows_not_given))
    return "--html has all rows, by whatever one likes: leave out --json, --by, --pid and -n";
  if (const auto range = parse_range(h.range); range && !*range) return range->error().message;
  return "";
}

bool is_of_cpu(const std::string& resource) {
  return resource == to_string(Resource::cpu);
}

// The ledger is of CPU time: what other resources have instead are views of their own.
std::string_view view_of(const ReportChoice& o) {
  if (o.view != "ledger" || is_of_cpu(o.resource)) return o.view;
  return o.resource == to_string(Resource::wait) ? "waits" : "usage";
}

int show(const ReportChoice& o, const NamedProfile& of) {
  By by = by_from_string(o.by).value_or(By::pid);
  if (const std::string wrong = disagreement(o, by); !wrong.empty())
    return complain(wrong, exit_usage);
  const std::string_view view_name = view_of(o);
  // Those look for resources by themselves.
  const bool whole = view_name == "waits" || (view_name == "usage" && o.view == view_name);
  auto profile = of.read();
  if (profile && !whole) profile = only_resource(std::move(*profile), of.name, o.resource);
  if (!profile) return complain(profile.error().message, exit_failure);
  by = charge_as_asked(*profile, by);
  ReportOptions r = terminal_options();
  r.pids = o.pids;
  r.by = by;
  r.apart = !o.by.empty();
  r.limit = o.rows == rows_not_given ? 0 : o.rows;
  r.threshold = o.threshold;
  if (o.view == "histogram") return show_histogram(o, *profile, r);
  const ReportView& view = **std::ranges::find(views, view_name, &ReportView::name);
  return print((o.json ? view.json : view.text)(*profile, r)) ? 0 : exit_failure;
}

int write_page(const ReportChoice& o, const NamedProfile& of) {
  const By by = by_from_string(o.by).value_or(By::pid);
  if (const std::string wrong = disagreement(o, by); !wrong.empty())
    return complain(wrong, exit_usage);
  auto profile = of.read();
  if (profile && !is_of_cpu(o.resource))
    profile = only_resource(std::move(*profile), of.name, o.resource);
  if (!profile) return complain(profile.error().message, exit_failure);
  const auto html = page_html(*profile, std::filesystem::path(of.name).filename());
  if (!html) return complain(html.error().message, exit_failure);
  if (const auto written = write_file(o.html, *html); !written)
    return complain(written.error().message, exit_failure);
  return o.open ? open_in_browser(o.html) : 0;
}

// "a, b or c".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

}  // namespace

void add_by_option(ArgParser& parser, std::string& by) {
  std::vector<std::string> names;
  names.reserve(every_by.size());
  for (const By one : every_by) names.emplace_back(to_string(one));
  parser.add("--by", by, "Rows: " + listed(names)).type("WHAT").one_of(names);
}

void add_resource_option(ArgParser& parser, std::string& resource) {
  std::vector<std::string> names;
  names.reserve(every_resource.size());
  for (const Resource one : every_resource) names.emplace_back(to_string(one));
  parser.add("--resource", resource, "Of what the times, or bytes, are: " + listed(names))
      .type("NAME")
      .one_of(names)
      .show_default();
}

Result<Profile> only_resource(Profile profile, const std::string& name,
                              const std::string& resource) {
  const Resource wanted = resource_from_string(resource).value_or(Resource::cpu);
  if (wanted != Resource::cpu && !has_resource(profile, wanted))
    return fail(name + ": it has nothing of " + resource + ", which `record --resource " +
                resource + "` records");
  return of_resource(std::move(profile), wanted);
}

Result<Profile> read_resource(const std::string& file, const std::string& resource) {
  auto profile = read_profile(file);
  if (!profile) return profile;
  return only_resource(std::move(*profile), file, resource);
}

Result<Profile> read_for_page(const std::string& file, const std::string& resource) {
  return is_of_cpu(resource) ? read_profile(file) : read_resource(file, resource);
}

void add_charge_option(ArgParser& parser, std::string& by) {
  parser.add("--by", by, "client: what a server did for a client is the client's")
      .type("WHAT")
      .one_of({"pid", "client"});
}

void add_histogram_options(ArgParser& parser, HistogramOptions& o) {
  parser
      .add("-r,--range", o.range, "Only these addresses of the file, in hexadecimal, or a function")
      .type("START-END");
  parser.add("--library", o.library, "Of this shared library, not of the program").type("NAME");
  parser.add("--kernel", o.kernel, "Time in the kernel apart, not at the calling instruction");
}

int show_report(const ReportChoice& how, const NamedProfile& of) {
  return how.html.empty() ? show(how, of) : write_page(how, of);
}

void add_report_options(ArgParser& parser, ReportChoice& o) {
  std::vector<std::string> names;
  names.reserve(views.size() + 1);
  for (const ReportView* const view : views) names.emplace_back(view->name);
  names.emplace_back("histogram");
  parser.add("--view", o.view, listed(names)).type("VIEW").one_of(names).show_default();
  parser.add("--pid", o.pids, "Only what these processes were served")
      .separated_by(',')
      .type("PID[,PID...]");
  add_by_option(parser, o.by);
  add_resource_option(parser, o.resource);
  parser.add("-n,--rows", o.rows, "At most that many rows").type("N");
  parser
      .add("--threshold", o.threshold, "Sum up what is below in the tree and the graph, in percent")
      .type("PERCENT")
      .range(0.0, 100.0)
      .show_default();
  add_histogram_options(parser, o.histogram);
  parser.add("--json", o.json, "One JSON object: the ledger, or with --view that one");
  parser.add("--html", o.html, "Write a page to look at in a browser: one file, no network")
      .type("FILE");
  parser.add("--open", o.open, "With --html: show it in the browser");
}

void add_report(ArgParser& parser, CommandLine& line) {
  struct Options {
    std::string file = "pkprof.pb.gz";
    ReportChoice how;
  };
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("report", "Show a recorded profile; needs no privilege");
  sub.add("file", options->file, "Profile written by `pkprof record`").type("FILE").show_default();
  add_report_options(sub, options->how);
  sub.examples({"pkprof report", "pkprof report before.pb.gz --view tree --pid 1234",
                "pkprof report --html page.html --open"});
  sub.when_used([options, &line] {
    line.action = [options] {
      const std::string& file = options->file;
      return show_report(options->how, {file, [&file] { return read_profile(file); }});
    };
  });
}

}  // namespace pkprof
