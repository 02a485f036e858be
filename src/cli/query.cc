// SPDX-License-Identifier: Apache-2.0
// pkprof query.
#include <memory>

#include "args/quantities.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/clean.h"
#include "store/store.h"

namespace pkprof {
namespace {

struct Options {
  std::string url;
  std::string since;
  std::string until;
  std::vector<std::string> hosts;
  std::vector<std::string> labels;
  ProcessFilter served;
  ReportChoice how;
  std::string output;
  std::string other_time;  // --diff-with
  std::vector<std::string> other_labels;
};

// What is asked for, in the user's words: a page and a diff are headed by it.
std::string name_of(const Options& o, const std::string& since, const std::string& until,
                    const std::vector<std::string>& labels) {
  std::string name = o.url;
  if (!since.empty() || !until.empty()) name += " " + since + ".." + until;
  for (const auto* words : {&o.hosts, &labels})
    for (const std::string& word : *words) name += " " + word;
  return name;
}

Result<StoreQuery> query_of(const Options& o, const std::string& since, const std::string& until,
                            const std::vector<std::string>& labels, uint64_t now) {
  StoreQuery query{.hosts = o.hosts, .served = o.served};
  for (const auto& [word, time] :
       {std::pair{&since, &query.since_unix_ns}, std::pair{&until, &query.until_unix_ns}}) {
    if (word->empty()) continue;
    const auto moment = parse_moment(*word, now);
    if (!moment) return std::unexpected(moment.error());
    *time = *moment;
  }
  if (query.since_unix_ns >= query.until_unix_ns)
    return fail("nothing is since " + since + " and before " + until);
  auto parsed = parse_labels(labels);
  if (!parsed) return std::unexpected(parsed.error());
  query.labels = std::move(*parsed);
  return query;
}

// The profile is read once it is known to be shown.
NamedProfile out_of_store(const std::string& url, std::string name, StoreQuery query) {
  return {std::move(name), [url, query = std::move(query)]() -> Result<Profile> {
            const auto store = Store::open(url, Store::Mode::read);
            if (!store) return std::unexpected(store.error());
            return (*store)->query(query);
          }};
}

int keep(const Options& o, const NamedProfile& of) {
  const auto profile = of.read();
  if (!profile) return complain(profile.error().message, exit_failure);
  if (const auto written = write_profile(*profile, o.output); !written)
    return complain(written.error().message, exit_failure);
  if (o.output == "-" || o.output == "/dev/stdout") return 0;
  const std::string file = clean(o.output);
  return print("Written to " + file + "; see it with: pkprof report " + file + "\n") ? 0
                                                                                     : exit_failure;
}

int diff(const Options& o, const NamedProfile& after, uint64_t now) {
  const ReportChoice& how = o.how;
  if (how.view != ReportChoice().view || how.open)
    return complain("a diff has one view, and is not opened: leave out --view and --open",
                    exit_usage);
  std::string since = o.since;
  std::string until = o.until;
  if (!o.other_time.empty()) {
    const size_t dots = o.other_time.find("..");
    if (dots == std::string::npos)
      return complain("--diff-with: " + o.other_time + " is no range; write SINCE..UNTIL",
                      exit_usage);
    since = o.other_time.substr(0, dots);
    until = o.other_time.substr(dots + 2);
  }
  const auto& labels = o.other_labels.empty() ? o.labels : o.other_labels;
  auto query = query_of(o, since, until, labels, now);
  if (!query) return complain("--diff-with: " + query.error().message, exit_usage);
  DiffChoice choice{.pids = how.pids, .resource = how.resource, .json = how.json, .html = how.html};
  if (!how.by.empty()) choice.by = how.by;
  if (how.rows != rows_not_given) choice.rows = how.rows;
  return show_diff(choice, out_of_store(o.url, name_of(o, since, until, labels), std::move(*query)),
                   after);
}

int run(const Options& o) {
  const uint64_t now = unix_ns();
  auto query = query_of(o, o.since, o.until, o.labels, now);
  if (!query) return complain(query.error().message, exit_usage);
  const NamedProfile found =
      out_of_store(o.url, name_of(o, o.since, o.until, o.labels), std::move(*query));
  const bool compares = !o.other_time.empty() || !o.other_labels.empty();
  if (!o.output.empty()) {
    if (compares)
      return complain("-o keeps one profile: leave out what to compare it with", exit_usage);
    return keep(o, found);
  }
  return compares ? diff(o, found, now) : show_report(o.how, found);
}

}  // namespace

void add_query(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  ArgParser sub =
      parser.subcommand("query", "Show a profile out of a store: a time, hosts, processes");
  sub.add("url", o.url, "The store: sqlite:FILE, or a file that ends in .db or .sqlite")
      .type("URL")
      .required();
  sub.add("--since", o.since,
          "Cuts that began then or later: 15m, 1h, 7d ago, or 2026-11-30T03:13:07Z")
      .type("TIME");
  sub.add("--until", o.until, "Cuts that began before").type("TIME");
  sub.add("--host", o.hosts, "Only of this host; may be given again")
      .type("NAME")
      .named_each_time();
  sub.add("--label", o.labels, "Only cuts that have this label; of several, all")
      .type("KEY=VALUE")
      .named_each_time();
  sub.add("--container", o.served.container, "Only processes in this container; the rest is OTHER")
      .type("NAME");
  sub.add("--unit", o.served.unit, "Only processes of this systemd unit").type("NAME");
  sub.add("--exe", o.served.exe, "Only processes of this executable").type("PATH");
  sub.add("--image", o.served.image, "Only processes in containers of this image").type("NAME");
  sub.add("--comm", o.served.comm, "Only processes of this name").type("NAME");
  add_report_options(sub, o.how);
  sub.add("-o,--output", o.output,
          "Keep the profile, for report, diff, export; - is standard output")
      .type("FILE");
  sub.add("--diff-with", o.other_time, "Show what changed since another time").type("SINCE..UNTIL");
  sub.add("--diff-with-label", o.other_labels, "Show what is different from cuts with this label")
      .type("KEY=VALUE")
      .named_each_time();
  sub.examples({"pkprof query fleet.db --since 1h --by host",
                "pkprof query fleet.db --since 1h --comm nginx --view flat",
                "pkprof query fleet.db --since 10m --diff-with 1h..10m --by comm",
                "pkprof query fleet.db --label version=2 --diff-with-label version=1"});
  sub.when_used([options, &line] { line.action = [options] { return run(*options); }; });
}

}  // namespace pkprof
