// SPDX-License-Identifier: Apache-2.0
// pkprof: for whom is my kernel working?
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "report/clean.h"

namespace pkprof {

int complain(const std::string& message, int status) {
  // What failed may name a hostile file or process.
  std::fprintf(stderr, "pkprof: %s\n", clean(message).c_str());
  return status;
}

namespace {

int run_command_line(std::vector<std::string> words) {
  CommandLine line;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const bool has_dashes = dashes != words.end();
  if (has_dashes) {
    line.command.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  ArgParser app(
      "For whom is my kernel working? Charges CPU time, asynchronous kernel work too, to "
      "the process that benefits.",
      "pkprof");
  app.version("pkprof " PKPROF_VERSION);
  app.require_subcommand();
  add_run(app, line);
  add_record(app, line);
  add_report(app, line);
  add_stat(app, line);
  add_calls(app, line);
  add_hist(app, line);
  add_start(app, line);
  add_stop(app, line);
  add_reset(app, line);
  add_dump(app, line);
  add_status(app, line);
  add_export(app, line);
  add_doctor(app, line);
  if (const auto end = app.parse(words)) {
    if (end->error.empty()) return end->status;
    return complain(end->error + "; see `pkprof --help`", exit_usage);
  }
  if (has_dashes && line.command.empty())
    return complain("nothing behind --: name the command to record", exit_usage);
  return line.action();
}

}  // namespace
}  // namespace pkprof

int main(int argc, char** argv) {
  try {
    return pkprof::run_command_line(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return pkprof::complain("out of memory", pkprof::exit_failure);
  } catch (const std::exception& e) {
    return pkprof::complain(e.what(), pkprof::exit_failure);
  }
}
