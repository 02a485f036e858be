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

struct Options {
  std::string a;
  std::string b;
  std::string by = "comm";
  std::vector<uint32_t> pids;
  size_t rows = 0;
  std::string resource = "cpu";
  bool json = false;
  std::string html;
};

int write_page(const Options& o, const Profile& a, const Profile& b, By by) {
  if (o.json || !o.pids.empty() || o.rows)
    return complain("--html has all rows: leave out --json, --pid and -n", exit_usage);
  const auto html = diff_page_html(a, o.a, b, o.b, by);
  if (!html) return complain(html.error().message, exit_failure);
  const auto written = write_file(o.html, *html);
  return written ? 0 : complain(written.error().message, exit_failure);
}

int diff(const Options& o) {
  auto a = read_resource(o.a, o.resource);
  if (!a) return complain(a.error().message, exit_failure);
  auto b = read_resource(o.b, o.resource);
  if (!b) return complain(b.error().message, exit_failure);
  const By by = by_from_string(o.by).value_or(By::comm);
  charge_as_asked(*a, by);
  const By rows = charge_as_asked(*b, by);
  if (!o.html.empty()) return write_page(o, *a, *b, rows);
  ReportOptions how = terminal_options();
  how.by = rows;
  how.pids = o.pids;
  how.limit = o.rows;
  return print((o.json ? diff_json : diff_text)(*a, o.a, *b, o.b, how)) ? 0 : exit_failure;
}

}  // namespace

void add_diff(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("diff", "Compare two profiles: what got dearer, and for whom");
  sub.add("a", options->a, "The profile before").type("FILE").required();
  sub.add("b", options->b, "The profile after").type("FILE").required();
  add_by_option(sub, options->by);
  add_resource_option(sub, options->resource);
  sub.add("--pid", options->pids, "Only what these processes were served")
      .separated_by(',')
      .type("PID[,PID...]");
  sub.add("-n,--rows", options->rows, "At most so many rows of each table; 15 without it")
      .type("N");
  sub.add("--json", options->json, "One JSON object, with all of it");
  sub.add("--html", options->html, "Write a page to look at in a browser").type("FILE");
  sub.examples({"pkprof diff before.pb.gz after.pb.gz --by comm"});
  sub.when_used([options, &line] { line.action = [options] { return diff(*options); }; });
}

}  // namespace pkprof
