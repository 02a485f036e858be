// SPDX-License-Identifier: Apache-2.0
#include "record/prepared.h"

#include <unistd.h>

#include <cstdlib>
#include <future>
#include <utility>

#include "process/callers_limits.h"
#include "process/targets.h"

namespace pkprof {

namespace {

Result<> make_tables(Prepared& prepared) {
  constexpr uint64_t most_bytes = 64 << 20;
  const UnwindMaps& maps = prepared.kernel.unwind();
  TableMaker::Sink sink;
  sink.put = [&maps](uint64_t file, const UnwindTable& table) {
    return maps.put(file, table.blocks(), [&table](auto blocks) { table.lay_out(blocks); });
  };
  sink.remove = [&maps](uint64_t file) { maps.remove(file); };
  sink.used = [&maps](uint64_t file) { return maps.used(file); };
  prepared.tables = std::make_unique<TableMaker>(std::move(sink), most_bytes);
  prepared.mappings.tell([&tables = *prepared.tables](const Mappings::Code& code) {
    if (code.pid != static_cast<uint32_t>(::getpid()))
      tables.want({code.file, code.pid, code.start, code.end, code.inode, code.path});
  });
  auto unfinished = UnfinishedStacks::open(maps.unfinished(), *prepared.tables);
  if (!unfinished) return std::unexpected(unfinished.error());
  prepared.unfinished = std::move(*unfinished);
  return {};
}

}  // namespace

Result<std::unique_ptr<Prepared>> prepare(RecordOptions& options) {
  raise_limits();
  if (auto r = check_target(options.target); !r) return std::unexpected(r.error());
  std::optional<Child> child;
  if (!options.target.command.empty()) {
    auto spawned = Child::spawn(options.target.command, options.target.user);
    if (!spawned) return std::unexpected(spawned.error());
    child.emplace(std::move(*spawned));
  }
  // What takes some ten milliseconds each is done side by side.
  KnownFunctions functions;
  auto loading = std::async(std::launch::async | std::launch::deferred, [&functions] {
    auto loaded = load_kernel_symbols();
    if (loaded) functions = find_functions(*loaded);
    return loaded;
  });
  auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  KernelSideOptions side{.frequency_hz = options.frequency_hz,
                         .threads = options.threads,
                         .hooks = options.hooks,
                         .measure = options.measure,
                         .mappings = true,
                         .unwind = !options.measure && !std::getenv("PKPROF_NO_UNWIND"),
                         .clients = options.clients,
                         .waits = options.counts_waits(),
                         .usage = options.usage};
  if (options.calls) {
    side.calls = find_call_facilities(*facts);
    if (!side.calls.any()) return fail("counting calls: " + side.calls.refused);
  }
  auto kernel = LoadedKernel::load(*facts, side);
  if (!kernel) return std::unexpected(kernel.error());
  const HookOverhead overhead = kernel->overhead();
  std::vector<std::string> degraded;
  auto symbols = loading.get();
  if (!symbols) degraded.push_back(symbols.error().message);
  // What counts calls tells processes without their programs: those are by what they map, then. It
  // is opened when the overhead is measured, which has thousands of events for it.
  const auto maps = options.calls ? Sideband::Maps::yes : Sideband::Maps::no;
  const auto cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  auto sideband = Sideband::open(Sideband::ring_bytes_for(cpus), maps);
  if (!sideband)
    degraded.push_back(sideband.error().message +
                       ": programs that a process ran one after the other are not told apart");
  auto attached = std::move(*kernel).attach(symbols ? &functions : nullptr);
  if (!attached) return std::unexpected(attached.error());
  auto mappings = Mappings::open(attached->mapped());
  if (!mappings) return std::unexpected(mappings.error());
  const auto if_there = [](auto& result) {
    return result ? std::make_optional(std::move(*result)) : std::nullopt;
  };
  std::unique_ptr<Prepared> prepared(new Prepared{.child = std::move(child),
                                                  .symbols = if_there(symbols),
                                                  .facts = std::move(*facts),
                                                  .kernel = std::move(*attached),
                                                  .overhead = overhead,
                                                  .sideband = if_there(sideband),
                                                  .mappings = std::move(*mappings),
                                                  .tables = nullptr,
                                                  .unfinished = nullptr,
                                                  .degraded = std::move(degraded)});
  if (prepared->kernel.unwind().wanted())
    if (auto r = make_tables(*prepared); !r) return std::unexpected(r.error());
  return prepared;
}

}  // namespace pkprof
