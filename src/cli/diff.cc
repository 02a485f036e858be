// SPDX-License-Identifier: Apache-2.0
// pkprof diff.
#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/file.h"
#include "model/pprof/pprof.h"
#include "report/clients.h"
#include "report/diff/diff_text.h"
#include "report/page/page.h"

namespace pkprof {
namespace {

int write_page(const DiffChoice& o, const NamedProfile& of_a, const Profile& a,
               const NamedProfile& of_b, const Profile& b, By by) {
  if (o.json || !o.pids.empty() || o.rows)
    return complain("--html has all rows: leave out --json, --pid and -n", exit_usage);
  const auto html = diff_page_html(a, of_a.name, b, of_b.name, by);
  if (!html) return complain(html.error().message, exit_failure);
  const auto written = write_file(o.html, *html);
  return written ? 0 : complain(written.error().message, exit_failure);
}

}  // namespace

int show_diff(const DiffChoice& o, const NamedProfile& of_a, const NamedProfile& of_b) {
  const auto read = [&o](const NamedProfile& of) {
    auto profile = of.read();
    return profile ? only_resource(std::move(*profile), of.name, o.resource) : profile;
  };
  auto a = read(of_a);
  if (!a) return complain(a.error().message, exit_failure);
  auto b = read(of_b);
  if (!b) return complain(b.error().message, exit_failure);
  const By by = by_from_string(o.by).value_or(By::comm);
  charge_as_asked(*a, by);
  const By rows = charge_as_asked(*b, by);
  if (!o.html.empty()) return write_page(o, of_a, *a, of_b, *b, rows);
  ReportOptions how = terminal_options();
  how.by = rows;
  how.pids = o.pids;
  how.limit = o.rows;
  return print((o.json ? diff_json : diff_text)(*a, of_a.name, *b, of_b.name, how)) ? 0
                                                                                    : exit_failure;
}

void add_diff(ArgParser& parser, CommandLine& line) {
  struct Options {
    std::string a;
    std::string b;
    DiffChoice how;
  };
  auto options = std::make_shared<Options>();
  DiffChoice& how = options->how;
  ArgParser sub = parser.subcommand("diff", "Compare two profiles: what got dearer, and for whom");
  sub.add("a", options->a, "The profile before").type("FILE").required();
  sub.add("b", options->b, "The profile after").type("FILE").required();
  add_by_option(sub, how.by);
  add_resource_option(sub, how.resource);
  sub.add("--pid", how.pids, "Only what these processes were served")
      .separated_by(',')
      .type("PID[,PID...]");
  sub.add("-n,--rows", how.rows, "At most so many rows of each table; 15 without it").type("N");
  sub.add("--json", how.json, "One JSON object, with all of it");
  sub.add("--html", how.html, "Write a page to look at in a browser").type("FILE");
  sub.examples({"pkprof diff before.pb.gz after.pb.gz --by comm"});
  sub.when_used([options, &line] {
    line.action = [options] {
      const auto file = [](const std::string& path) {
        return NamedProfile{path, [&path] { return read_profile(path); }};
      };
      return show_diff(options->how, file(options->a), file(options->b));
    };
  });
}

}  // namespace pkprof
