// SPDX-License-Identifier: Apache-2.0
#include "live.h"

#include <unistd.h>

#include <functional>
#include <vector>

#include "crowd.h"
#include "kernel/kernel_side.h"
#include "probe/facts.h"
#include "process.h"
#include "recording.h"

namespace pkprof::scale {
namespace {

// Asking the kernel for sockets' owners, alone: an empty recording that asks once more.
Result<Json> time_of_asking() {
  const auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  auto loaded = LoadedKernel::load(*facts, {});
  if (!loaded) return std::unexpected(loaded.error());
  auto kernel = std::move(*loaded).attach(nullptr);
  if (!kernel) return std::unexpected(kernel.error());
  const double before = now_ms();
  if (!kernel->owners().ask()) return fail("this kernel does not tell who holds a socket");
  return Json{{"asking for owners, ms", now_ms() - before},
              {"owners without room", kernel->owners().without_room()}};
}

using StartCrowd = std::function<Result<Crowd>(uint32_t)>;

Result<> compare(const LiveOptions& options, const std::string& what, uint32_t many, bool ask,
                 const StartCrowd& start) {
  const std::vector<uint32_t> counts{options.few, many};
  std::vector<Column> columns{{.head = std::to_string(options.few)},
                              {.head = std::to_string(many)}};
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto crowd = start(counts[i]);
      if (!crowd) return std::unexpected(crowd.error());
      sleep(2);  // until what starting them left to do is done
      const RecordOptions how{.bin = options.bin, .seconds = options.seconds};
      if (auto r = record_once(how, columns[i]); !r) return r;
      if (!ask) continue;
      const auto asked = in_child(time_of_asking);
      if (!asked) return std::unexpected(asked.error());
      columns[i].add(*asked);
    }
  }
  print_table(what, columns);
  return {};
}

}  // namespace

Result<> record_processes(const LiveOptions& options) {
  return compare(options, "processes", options.processes, false, Crowd::processes);
}

Result<> record_sockets(const LiveOptions& options) {
  return compare(options, "sockets", options.sockets, true,
                 [&](uint32_t count) { return Crowd::sockets(count, options.packets); });
}

}  // namespace pkprof::scale
