// SPDX-License-Identifier: Apache-2.0
// pkprof serve.
#include "serve/server.h"

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/page/page.h"

namespace pkprof {
namespace {

struct Options {
  std::string file = "pkprof.pb.gz";
  std::string resource = "cpu";
  uint16_t port = 0;
};

int run(const Options& o) {
  // The file may be a new one when the page is loaded again.
  const auto page = [&]() -> Result<std::string> {
    const auto profile = read_for_page(o.file, o.resource);
    if (!profile) return std::unexpected(profile.error());
    return page_html(*profile, std::filesystem::path(o.file).filename());
  };
  if (const auto first = page(); !first) return complain(first.error().message, exit_failure);
  const auto ready = [](const std::string& url, uint16_t port) {
    const std::string text = std::to_string(port);
    print(url + "\n");
    print("From another machine: ssh -L " + text + ":127.0.0.1:" + text +
          " THIS-MACHINE, and open it there. Ctrl-C ends it.\n");
  };
  const auto done = serve({.page = page, .port = o.port, .ready = ready});
  return done ? 0 : complain(done.error().message, exit_failure);
}

}  // namespace

void add_serve(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("serve", "Show a profile's page to a browser, on loopback");
  sub.add("file", options->file, "Profile written by `pkprof record`").type("FILE").show_default();
  add_resource_option(sub, options->resource);
  sub.add("--port", options->port, "Port to listen on; without it any that is free").type("PORT");
  sub.examples({"pkprof serve before.pb.gz"});
  sub.when_used([options, &line] { line.action = [options] { return run(*options); }; });
}

}  // namespace pkprof
