// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each adds its options to the parser; what it then does is one call into the
// libraries. Exit status: 0, the recorded command's own, 2 for wrong usage, 125 when pkprof itself
// fails (as env and timeout do).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "args/arg_parser.h"
#include "base/result.h"
#include "model/profile.h"
#include "report/histogram/histogram.h"

namespace pkprof {

inline constexpr int exit_usage = 2;
inline constexpr int exit_failure = 125;

// `command` is what stands behind "--". The subcommand leaves what is to be done in `action`.
struct CommandLine {
  std::vector<std::string> command;
  std::function<int()> action;
};

void add_run(ArgParser& parser, CommandLine& line);
void add_record(ArgParser& parser, CommandLine& line);
void add_report(ArgParser& parser, CommandLine& line);
void add_serve(ArgParser& parser, CommandLine& line);
void add_diff(ArgParser& parser, CommandLine& line);
void add_stat(ArgParser& parser, CommandLine& line);
void add_top(ArgParser& parser, CommandLine& line);
void add_agent(ArgParser& parser, CommandLine& line);
void add_calls(ArgParser& parser, CommandLine& line);
void add_debox(ArgParser& parser, CommandLine& line);
void add_hist(ArgParser& parser, CommandLine& line);
void add_start(ArgParser& parser, CommandLine& line);
void add_stop(ArgParser& parser, CommandLine& line);
void add_reset(ArgParser& parser, CommandLine& line);
void add_dump(ArgParser& parser, CommandLine& line);
void add_status(ArgParser& parser, CommandLine& line);
void add_store(ArgParser& parser, CommandLine& line);
void add_query(ArgParser& parser, CommandLine& line);
void add_import(ArgParser& parser, CommandLine& line);
void add_export(ArgParser& parser, CommandLine& line);
void add_doctor(ArgParser& parser, CommandLine& line);

// Programs by other names of the same file: what they do is in `action`.
void add_pkgprof(ArgParser& app, CommandLine& line);
void add_pkgmon(ArgParser& app, CommandLine& line);

// --by, of report and run.
void add_by_option(ArgParser& parser, std::string& by);

// --resource, of those that show a profile: one of its resources. And a profile of that alone.
void add_resource_option(ArgParser& parser, std::string& resource);
[[nodiscard]] Result<Profile> only_resource(Profile profile, const std::string& name,
                                            const std::string& resource);
[[nodiscard]] Result<Profile> read_resource(const std::string& file, const std::string& resource);
// The page has a view of waits beside those of CPU time: it is of both, unless one is asked for.
[[nodiscard]] Result<Profile> read_for_page(const std::string& file, const std::string& resource);

// A profile to be shown, once its options are known to be right: of a file, or out of a store.
struct NamedProfile {
  std::string name;  // as the user calls it
  std::function<Result<Profile>()> read;
};

// What report shows of a profile, and query, too.
inline constexpr size_t rows_not_given = SIZE_MAX;
struct ReportChoice {
  std::string view = "ledger";
  std::string resource = "cpu";
  std::vector<uint32_t> pids;
  std::string by;  // "" is pid, and functions of all processes together
  bool json = false;
  std::string html;   // a file
  bool open = false;  // it in a browser
  size_t rows = rows_not_given;
  double threshold = 0.5;
  HistogramOptions histogram;
};
void add_report_options(ArgParser& parser, ReportChoice& choice);
[[nodiscard]] int show_report(const ReportChoice& how, const NamedProfile& of);

// What diff shows of two, and query, too.
struct DiffChoice {
  std::string by = "comm";
  std::vector<uint32_t> pids;
  size_t rows = 0;
  std::string resource = "cpu";
  bool json = false;
  std::string html;
};
[[nodiscard]] int show_diff(const DiffChoice& how, const NamedProfile& before,
                            const NamedProfile& after);

// --by, of those that list functions: of processes, or what servers did is their clients'.
void add_charge_option(ArgParser& parser, std::string& by);

// --user, of those that run a command.
void add_user_option(ArgParser& parser, std::string& user);

// -r, --library and --kernel, of report and hist.
void add_histogram_options(ArgParser& parser, HistogramOptions& o);

// "pkprof: what failed" on stderr, or by what name it was called; returns `status`.
int complain(const std::string& message, int status);

}  // namespace pkprof
