// SPDX-License-Identifier: Apache-2.0
// pkprof: for whom is my kernel working? And pkgprof and pkgmon, which are the same file by other
// names.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/fd.h"
#include "cli/commands.h"
#include "report/clean.h"

namespace pkprof {

namespace {

const char* called_as = "pkprof";

}  // namespace

int complain(const std::string& message, int status) {
  // What failed may name a hostile file or process.
  std::fprintf(stderr, "%s: %s\n", called_as, clean(message).c_str());
  return status;
}

namespace {

// Opens a file that says what options are. One that another user wrote would have root do what that
// user likes, and a FIFO would be waited for.
Fd open_config(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat about{};
  if (!fd.valid() || fstat(fd.get(), &about) != 0) return {};
  const bool is_ours = about.st_uid == 0 || about.st_uid == geteuid();
  if (is_ours && S_ISREG(about.st_mode)) return fd;
  complain(path + " is not read: it is " + (is_ours ? "no regular file" : "another user's"), 0);
  return {};
}

// The one file that says what options are where a command line does not: the one that is named, or
// the first there is. What was looked at is what is read, so it is named by its descriptor.
void add_config(ArgParser& app, std::vector<std::string>& words) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string named = set("PKPROF_CONFIG"); !named.empty())
    return app.config(named, true);
  std::string own = set("XDG_CONFIG_HOME");
  if (own.empty() && !set("HOME").empty()) own = set("HOME") + "/.config";
  static Fd opened;
  std::string last;
  for (const std::string& path : {own + "/pkprof.toml", std::string("/etc/pkprof.toml")}) {
    last = path;
    if (opened = open_config(path); opened.valid()) break;
  }
  app.config(last, false);
  if (opened.valid())
    words.insert(words.begin(), {"--config", "/proc/self/fd/" + std::to_string(opened.get())});
}

void describe_pkprof(ArgParser& app, CommandLine& line) {
  app.require_subcommand();
  add_run(app, line);
  add_record(app, line);
  add_report(app, line);
  add_serve(app, line);
  add_diff(app, line);
  add_stat(app, line);
  add_top(app, line);
  add_calls(app, line);
  add_debox(app, line);
  add_hist(app, line);
  add_start(app, line);
  add_stop(app, line);
  add_reset(app, line);
  add_dump(app, line);
  add_status(app, line);
  add_export(app, line);
  add_import(app, line);
  add_agent(app, line);
  add_store(app, line);
  add_query(app, line);
  add_doctor(app, line);
  // Last: subcommands would take it over.
  app.examples({"pkprof run -d 10                    # for whom is this machine working?",
                "pkprof top                          # the same, every second",
                "pkprof record -d 10 && pkprof report --html page.html"});
}

struct Program {
  const char* name;
  const char* about;
  void (*describe)(ArgParser& app, CommandLine& line);
  bool has_config = false;
};
constexpr Program programs[] = {
    {"pkprof",
     "For whom is my kernel working? Charges CPU time, asynchronous kernel work too, "
     "to the process that benefits.",
     describe_pkprof, true},
    {"pkgprof", "gprof's listings of processes, user code and kernel in one.", add_pkgprof},
    {"pkgmon", "Profiles a command, or processes, or controls a recording, into gmon.out files.",
     add_pkgmon},
};

// By the last part of what it was called by; pkprof by any other name.
const Program& program_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto* const it = std::ranges::find(programs, name, &Program::name);
  return it == std::end(programs) ? programs[0] : *it;
}

int run_command_line(const Program& program, std::vector<std::string> words) {
  called_as = program.name;
  CommandLine line;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const bool has_dashes = dashes != words.end();
  if (has_dashes) {
    line.command.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  ArgParser app(program.about, program.name);
  app.version(std::string(program.name) + " " PKPROF_VERSION "\n" PKPROF_BUILT);
  if (program.has_config) add_config(app, words);
  program.describe(app, line);
  if (const auto end = app.parse(words)) {
    if (end->error.empty()) return end->status;
    return complain(end->error + "; see `" + program.name + " --help`", exit_usage);
  }
  if (has_dashes && line.command.empty())
    return complain("nothing behind --: name the command to record", exit_usage);
  return line.action();
}

}  // namespace
}  // namespace pkprof

int main(int argc, char** argv) try {
  try {
    const auto& program = pkprof::program_of(argc > 0 ? argv[0] : "");
    return pkprof::run_command_line(
        program, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return pkprof::complain(e.what(), pkprof::exit_failure);
  }
} catch (const std::bad_alloc&) {
  // No memory may be left to say it with, either.
  std::fprintf(stderr, "%s: out of memory\n", pkprof::called_as);
  return pkprof::exit_failure;
}
