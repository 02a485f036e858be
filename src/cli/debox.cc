// SPDX-License-Identifier: Apache-2.0
// pkprof debox.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "debox/session.h"
#include "export/debox_json.h"
#include "model/file.h"
#include "report/clean.h"
#include "report/system_calls_text.h"

namespace pkprof {
namespace {

struct Options {
  DeboxOptions debox;
  bool no_async = false;
  double budget_percent = 5;
  std::string output;
  double min_us = 0;
  size_t rows = 0;
};

// A file of JSON lines, written as they come; "-" is standard output.
class Lines {
 public:
  explicit Lines(std::string path) : path_(std::move(path)) {}
  // What is new is readable by its owner only: calls' arguments are addresses. What is there stays
  // until the first line is written, or there is none.
  Result<> open() {
    if (path_ == "-") {
      file_ = stdout;
      return {};
    }
    auto fd = open_to_write(path_);
    if (!fd) return std::unexpected(fd.error());
    file_ = fdopen(fd->release(), "w");
    if (!file_) return fail_errno(path_);
    return {};
  }
  ~Lines() {
    if (file_ && file_ != stdout) std::fclose(file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  bool write(const std::string& line) {
    empty();
    if (file_ && std::fwrite(line.data(), 1, line.size(), file_) == line.size()) return true;
    fail();
    return false;
  }
  // Whether all that was written is there.
  bool finish() {
    empty();
    if (file_ && std::fflush(file_) != 0) fail();
    return error_ == 0;
  }
  [[nodiscard]] std::string error() const { return path_ + ": " + std::strerror(error_); }

 private:
  void empty() {
    if (std::exchange(empty_, true) || file_ == stdout) return;
    if (ftruncate(fileno(file_), 0) && errno != EINVAL) fail();  // of a pipe
  }
  void fail() {
    if (!error_) error_ = errno ? errno : EIO;
  }

  std::string path_;
  std::FILE* file_ = nullptr;
  bool empty_ = false;
  int error_ = 0;
};

int watch(Options& o, const CommandLine& line) {
  o.debox.command = line.command;
  if (o.debox.command.empty() && o.debox.pids.empty() && o.debox.attach.empty())
    return complain("whose system calls? Name a command behind --, or processes with -p",
                    exit_usage);
  if (o.debox.interval > 0 && o.output == "-")
    return complain("--interval and -o - both want standard output", exit_usage);
  o.debox.elsewhere = !o.no_async;
  o.debox.budget = o.budget_percent / 100;
  o.debox.min_ns = static_cast<uint64_t>(o.min_us * 1000);
  std::optional<Lines> lines;
  if (!o.output.empty()) {
    lines.emplace(o.output);
    o.debox.begins = [&lines] { return lines->open(); };
    o.debox.each = [&lines](const SlowCall& slow, const std::string& call,
                            const std::map<uint32_t, std::string>& places) {
      return lines->write(debox_json(slow, call, places));
    };
  }
  ReportOptions how = terminal_options();
  how.limit = o.rows;
  if (o.debox.interval > 0)
    o.debox.show = [&how](const SystemCalls& since) {
      return print(system_calls_text(since, how) + "\n");
    };
  const auto run = watch_calls(o.debox);
  if (!run) return complain(run.error().message, exit_failure);
  if (!run->command_error.empty()) return complain(run->command_error, run->command_status);
  if (lines && !lines->finish()) return complain(lines->error(), exit_failure);
  const bool no_table = o.debox.serve_only || (o.debox.command.empty() && o.debox.pids.empty());
  if (o.output == "-" || no_table) {
    for (const std::string& sentence : run->calls.degraded)
      std::fprintf(stderr, "pkprof: %s\n", clean(sentence, false).c_str());
    return run->command_status;
  }
  return print(system_calls_text(run->calls, how)) ? run->command_status : exit_failure;
}

}  // namespace

void add_debox(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub =
      parser.subcommand("debox", "System calls: what each cost, where it slept, who woke it");
  sub.add("-p,--pid", options->debox.pids, "Processes that run already")
      .separated_by(',')
      .type("PID[,PID...]");
  sub.add("--attach", options->debox.attach, "Serve running programs that use the library, no more")
      .separated_by(',')
      .type("PID[,PID...]");
  sub.add(
      "--serve", options->debox.serve_only,
      "Serve COMMAND, if it uses the library, no more: no table, and nobody else pays for calls");
  add_user_option(sub, options->debox.user);
  sub.add("-d,--duration", options->debox.seconds, "Stop after that many seconds").seconds();
  sub.add("--interval", options->debox.interval, "Show what came since, every so often")
      .type("SECONDS")
      .range(0.1, 86400.0);
  sub.add("-o,--output", options->output, "Keep the records, a line of JSON each; -: print them")
      .type("FILE");
  sub.add("--min-time", options->min_us, "Keep those of calls that take at least so long")
      .type("MICROSECONDS")
      .range(0.001, 1e12);
  sub.add("--filter", options->debox.calls, "Look at these calls alone")
      .separated_by(',')
      .type("CALL[,CALL...]");
  sub.add("--follow,!--no-follow", options->debox.follow,
          "Threads and processes that it begins, too, or --no-follow (default: --follow)");
  sub.add("--trace", options->debox.trace,
          "Functions of the kernel that a call enters, or patterns with * ? []: of each call whose "
          "record is kept, in order, with times")
      .separated_by(',')
      .type("GLOB[,GLOB...]");
  sub.add("--lines,!--no-lines", options->debox.lines,
          "Files and lines of places in the kernel, or --no-lines (default: --lines, where the "
          "kernel's debug information is installed)");
  sub.add("--stacks", options->debox.stacks,
          "The program's stack of each call whose record is kept");
  sub.add("--no-async", options->no_async,
          "Leave out what the kernel does for calls elsewhere, which takes a recording beside");
  sub.add("--budget", options->budget_percent, "Of each CPU's time, for that")
      .type("PERCENT")
      .range(0.01, 100.0)
      .show_default();
  sub.add("--slowest", options->debox.slowest, "So many of the slowest calls, each with its record")
      .type("N")
      .show_default();
  sub.add("-n,--rows", options->rows, "At most that many rows").type("N");
  sub.examples({"pkprof debox -- ./program", "pkprof debox -p 1234 -d 10 -o records.jsonl"});
  sub.when_used(
      [options, &line] { line.action = [options, &line] { return watch(*options, line); }; });
}

}  // namespace pkprof
