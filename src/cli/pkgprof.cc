// SPDX-License-Identifier: Apache-2.0
// pkgprof: gprof's listings of processes, user code and kernel in one, as the pkprof paper has
// them.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "export/gmon/files.h"
#include "model/pprof/pprof.h"
#include "report/clean.h"
#include "report/clients.h"
#include "report/format.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/program_calls.h"

namespace pkprof {
namespace {

constexpr const char* default_profile = "pkprof.pb.gz";

struct Options {
  std::vector<uint32_t> pids;
  std::string input;
  std::string calls;
  std::string by = "pid";
  bool flat = false;
  bool graph = false;
  bool brief = false;
  size_t rows = 0;
  double threshold = 0.5;
};

// What is listed, wherever it is from.
struct Listed {
  std::string from;  // for the first line
  ListingData graph;
  std::optional<ListingData> flat;  // where it is not the same
  std::vector<GmonProgram> programs;
  uint64_t start_unix_ns = 0;
};

Result<Listed> from_profile(const std::string& path, const Options& o) {
  auto profile = read_resource(path, "cpu");
  if (!profile) return std::unexpected(profile.error());
  charge_as_asked(*profile, by_from_string(o.by).value_or(By::pid));
  Listed listed{.from = path, .start_unix_ns = profile->meta.start_unix_ns};
  for (const uint32_t pid : o.pids) {
    const auto is_it = [&](const Label& label) { return is_selected(label, {&pid, 1}); };
    const auto it = std::ranges::find_if(profile->labels(), is_it);
    if (it == profile->labels().end())
      return fail("process " + std::to_string(pid) + " is not in " + path);
    listed.programs.push_back({pid, it->exe});
  }
  const ReportOptions apart{.pids = o.pids, .apart = true, .threshold = 0};
  listed.graph = listing_data_of(*profile, apart, ListingKind::graph);
  listed.flat = listing_data_of(*profile, apart, ListingKind::flat);
  return listed;
}

Result<Listed> from_files(const std::vector<std::string>& files, const Options& o) {
  Listed listed;
  std::vector<GmonSource> sources;
  for (const std::string& file : files) {
    Result<GmonSource> source = read_gmon_file(file);
    if (!source) return std::unexpected(source.error());
    listed.from += (listed.from.empty() ? "" : ", ") + file;
    listed.start_unix_ns = source->about->start_unix_ns;
    for (const GmonAbout::Part& part : source->about->parts) {
      if (std::ranges::find(o.pids, part.pid) != o.pids.end())
        listed.programs.push_back({part.pid, part.exe});
    }
    sources.push_back(std::move(*source));
  }
  Result<ListingData> data = gmon_listing(sources);
  if (!data) return std::unexpected(data.error());
  listed.graph = std::move(*data);
  return listed;
}

Result<Listed> from_where_it_is(const Options& o) {
  if (!o.input.empty()) return from_profile(o.input, o);
  // gmon.out files are charged as they were exported.
  if (o.by != Options().by) return from_profile(default_profile, o);
  const std::vector<std::string> files = find_gmon_files("", o.pids);
  if (!files.empty()) return from_files(files, o);
  if (::access(default_profile, F_OK) == 0) return from_profile(default_profile, o);
  return fail(std::string("here are neither gmon.out.") + (o.pids.empty() ? "all" : "PID.NAME") +
              " as `pkgmon` writes, nor " + default_profile + "; -i names a profile");
}

// A flat profile has fewer nodes; those that it has are called as often.
void copy_calls(const ListingData& from, ListingData& to) {
  std::map<std::pair<uint32_t, FunctionId>, const CallNode*> nodes;
  for (const CallNode& node : from.graph.nodes) {
    if (node.function != no_function) nodes[{node.scope, node.function}] = &node;
  }
  for (CallNode& node : to.graph.nodes) {
    const auto it = nodes.find({node.scope, node.function});
    if (it == nodes.end() || !it->second->counts_itself) continue;
    node.calls = it->second->calls;
    node.recursive_calls = it->second->recursive_calls;
    node.all_calls_counted = it->second->all_calls_counted;
  }
}

// A sentence for the first lines, "" where nothing was joined.
Result<std::string> join(Listed& listed, const GmonSource& source) {
  const Result<ListingData> program = gmon_listing({&source, 1});
  if (!program) return std::unexpected(program.error());
  const ProgramCalls joined = add_program_calls(listed.graph, *program, source.whose);
  if (joined.times_too) listed.flat.reset();  // it has none of these
  if (listed.flat) copy_calls(listed.graph, *listed.flat);
  return "calls of " + source.whose + "u as " + source.path +
         " counted them: " + std::to_string(joined.calls) + "; its own clock has " +
         duration_text(joined.self_ns) +
         (joined.times_too ? ", taken for want of samples\n" : " for that part of the same code\n");
}

Result<std::string> join_all(Listed& listed, const Options& o) {
  std::string said;
  if (!o.calls.empty() && listed.programs.size() != 1)
    return fail("--calls is of one process: name it");
  for (const GmonProgram& program : listed.programs) {
    std::optional<GmonSource> source;
    if (o.calls.empty()) {
      source = find_program_gmon("", program, listed.start_unix_ns);
    } else {
      Result<GmonSource> named = read_program_gmon(o.calls, program);
      if (!named) return std::unexpected(named.error());
      source = std::move(*named);
    }
    if (!source) continue;
    const Result<std::string> one = join(listed, *source);
    if (!one) return one;
    said += *one;
  }
  return said;
}

int list(const Options& o) {
  Result<Listed> listed = from_where_it_is(o);
  if (!listed) return complain(listed.error().message, exit_failure);
  const Result<std::string> said = join_all(*listed, o);
  if (!said) return complain(said.error().message, exit_failure);

  ReportOptions r = terminal_options();
  r.limit = o.rows;
  r.threshold = o.threshold;
  std::string text = clean("of " + listed->from, r.unicode) + "\n";
  for (size_t at = 0; at < said->size();) {
    const size_t end = said->find('\n', at);
    text += clean(said->substr(at, end - at), r.unicode) + "\n";
    at = end + 1;
  }
  if (o.flat || !o.graph) {
    const Listing flat(listed->flat ? *listed->flat : listed->graph, r.unicode);
    text += "\n" + flat_text_of(flat, r);
  }
  if (o.graph || !o.flat)
    text += "\n" + graph_text_of(Listing(std::move(listed->graph), r.unicode), r);
  return print(text) ? 0 : exit_failure;
}

}  // namespace

void add_pkgprof(ArgParser& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  app.add("pid", options->pids, "Processes; all without one").type("PID...");
  app.add("-i,--input", options->input,
          "A profile; without it gmon.out.PID.NAME files here, or else pkprof.pb.gz")
      .type("FILE");
  add_charge_option(app, options->by);
  app.add("--calls", options->calls,
          "What the program, compiled with -pg, wrote; without it gmon.out here, if it fits")
      .type("FILE");
  app.add("-p,--flat", options->flat, "The flat profile alone");
  app.add("-q,--graph", options->graph, "The call graph alone");
  app.add("-b,--brief", options->brief, "As gprof's; there is nothing to leave out");
  app.add("-n,--rows", options->rows, "At most that many rows, or entries").type("N");
  app.add("--threshold", options->threshold, "Sum up what is below, in percent")
      .type("PERCENT")
      .range(0.0, 100.0)
      .show_default();
  line.action = [options] { return list(*options); };
}

}  // namespace pkprof
