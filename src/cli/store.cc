// SPDX-License-Identifier: Apache-2.0
// pkprof store: makes, fills, describes and trims a store.
#include "store/store.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "args/quantities.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/clean.h"
#include "report/format.h"
#include "report/json_header.h"

namespace pkprof {
namespace {

using Mode = Store::Mode;

struct Options {
  std::string url;
  std::vector<std::string> files;
  std::string host;
  std::vector<std::string> labels;
  std::string older_than;
  std::string larger_than;
  bool json = false;
};

int init(const Options& o) {
  const auto store = Store::open(o.url, Mode::create);
  if (!store) return complain(store.error().message, exit_failure);
  const auto done = (*store)->init();
  return done ? 0 : complain(done.error().message, exit_failure);
}

std::string bytes_text(uint64_t bytes) {
  return amount_text(Resource::memory, bytes);
}

std::string info_text(const std::string& url, const StoreInfo& info) {
  const ReportOptions options = terminal_options();
  std::string text = clean(url, options.unicode) + ": " + std::to_string(info.cuts) +
                     (info.cuts == 1 ? " cut of " : " cuts of ") +
                     std::to_string(info.hosts.size()) +
                     (info.hosts.size() == 1 ? " host, " : " hosts, ") + bytes_text(info.bytes) +
                     ", schema " + std::to_string(info.schema) + "\n";
  if (info.hosts.empty()) return text;
  constexpr size_t host_width = 24;
  const auto line = [&](const std::string& host, const std::string& cuts, const std::string& first,
                        const std::string& last, const std::string& cpu) {
    text += "  " + pad_right(fit(host, host_width, options.unicode), host_width) +
            pad_left(cuts, 9) + "  " + pad_right(first, 22) + pad_right(last, 20) +
            pad_left(cpu, 12) + "\n";
  };
  line("HOST", "CUTS", "FIRST", "LAST ENDS", "CPU TIME");
  for (const StoreInfo::Host& host : info.hosts)
    line(clean(host.name, options.unicode), std::to_string(host.cuts),
         moment_text(host.first_unix_ns), moment_text(host.last_unix_ns),
         duration_text(host.cpu_ns));
  return text;
}

std::string info_json(const StoreInfo& info) {
  Json to = {{"schema", "pkprof.store/1"},
             {"tables", info.schema},
             {"cuts", info.cuts},
             {"bytes", info.bytes}};
  Json& hosts = to["hosts"] = Json::array();
  for (const StoreInfo::Host& host : info.hosts)
    hosts.push_back({{"host", host.name},
                     {"cuts", host.cuts},
                     {"first_unix_ns", host.first_unix_ns},
                     {"last_unix_ns", host.last_unix_ns},
                     {"cpu_ns", host.cpu_ns}});
  return json_line(to);
}

int show_info(const Options& o) {
  const auto store = Store::open(o.url, Mode::read);
  if (!store) return complain(store.error().message, exit_failure);
  const auto info = (*store)->info();
  if (!info) return complain(info.error().message, exit_failure);
  return print(o.json ? info_json(*info) : info_text(o.url, *info)) ? 0 : exit_failure;
}

Result<Cut> cut_of_file(const std::string& path, const Options& o) {
  auto profile = read_profile(path);
  if (!profile) return std::unexpected(profile.error());
  Cut cut{.host = o.host.empty() ? profile->meta.host : o.host,
          .start_unix_ns = profile->meta.start_unix_ns,
          .profile = std::move(*profile)};
  if (cut.host.empty()) return fail(path + " does not say of which host it is: give --host");
  if (cut.start_unix_ns == 0) return fail(path + " does not say when it was recorded");
  return cut;
}

int add(const Options& o) {
  const auto labels = parse_labels(o.labels);
  if (!labels) return complain("--label: " + labels.error().message, exit_usage);
  const auto store = Store::open(o.url, Mode::write);
  if (!store) return complain(store.error().message, exit_failure);
  size_t added = 0;
  for (const std::string& path : o.files) {
    auto cut = cut_of_file(path, o);
    if (!cut) return complain(cut.error().message, exit_failure);
    cut->labels = *labels;
    const auto is_new = (*store)->put(*cut);
    if (!is_new) return complain(path + " into " + is_new.error().message, exit_failure);
    added += *is_new ? 1 : 0;
  }
  std::string text = std::to_string(added) + (added == 1 ? " cut" : " cuts") + " added";
  if (const size_t there = o.files.size() - added; there != 0)
    text += ", " + std::to_string(there) + (there == 1 ? " was" : " were") + " there already";
  return print(text + "\n") ? 0 : exit_failure;
}

int trim(const Options& o) {
  if (o.older_than.empty() && o.larger_than.empty())
    return complain("give --older-than AGE, --larger-than SIZE or both", exit_usage);
  Retention keep;
  if (!o.older_than.empty()) {
    const auto age = parse_age(o.older_than);
    if (!age) return complain("--older-than: " + age.error().message, exit_usage);
    const uint64_t now = unix_ns();
    keep.oldest_unix_ns = now - std::min(*age, now);
  }
  if (!o.larger_than.empty()) {
    const auto bytes = parse_bytes(o.larger_than);
    if (!bytes) return complain("--larger-than: " + bytes.error().message, exit_usage);
    if (*bytes == 0) return complain("--larger-than: a store is never smaller than 0", exit_usage);
    keep.max_bytes = *bytes;
  }
  const auto store = Store::open(o.url, Mode::write);
  if (!store) return complain(store.error().message, exit_failure);
  const auto deleted = (*store)->retain(keep);
  if (!deleted) return complain(deleted.error().message, exit_failure);
  return print(std::to_string(*deleted) + (*deleted == 1 ? " cut" : " cuts") + " deleted\n")
             ? 0
             : exit_failure;
}

using Action = int (*)(const Options&);

}  // namespace

void add_store(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser store = parser.subcommand(
      "store", "Keep profiles of one host or of many, for `pkprof query` to find");
  store.require_subcommand();
  const auto command = [&](const char* name, const char* about, Action action) {
    ArgParser sub = store.subcommand(name, about);
    sub.add("url", options->url, "sqlite:FILE, or a file that ends in .db or .sqlite")
        .type("URL")
        .required();
    sub.when_used(
        [options, action, &line] { line.action = [options, action] { return action(*options); }; });
    return sub;
  };
  command("init", "Make a store, or bring one of an older pkprof up to date", init);
  command("info", "Which hosts are in it, since when, and how large it is", show_info)
      .add("--json", options->json, "One JSON object");
  ArgParser sub = command("add", "Put profiles into it that `pkprof record` wrote", add);
  sub.add("files", options->files, "Profiles; one that is there already is not added twice")
      .type("FILE...")
      .required();
  sub.add("--host", options->host, "Whose they are; without it as they say").type("NAME");
  sub.add("--label", options->labels, "What else to find them by")
      .type("KEY=VALUE")
      .named_each_time();
  sub = command("trim", "Delete the oldest cuts from it", trim);
  sub.add("--older-than", options->older_than, "Those that began so long ago: 36h, 30d, 8w")
      .type("AGE");
  sub.add("--larger-than", options->larger_than, "The oldest, until no more is used: 500M, 2G")
      .type("SIZE");
  store.examples({"pkprof store init /var/lib/pkprof/fleet.db",
                  "pkprof store add fleet.db web1.pb.gz --host web1 --label env=prod",
                  "pkprof store trim fleet.db --older-than 30d --larger-than 2G"});
}

}  // namespace pkprof
