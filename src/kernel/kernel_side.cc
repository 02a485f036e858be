// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_side.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <future>

#include "kernel/kernel_side_impl.h"
#include "kernel/kernel_stats.h"

namespace pkprof {

void LoadedKernel::PartsFree::operator()(Parts* parts) const {
  delete parts;
}

LoadedKernel::LoadedKernel(std::unique_ptr<Parts, PartsFree> parts, HookOverhead overhead)
    : parts_(std::move(parts)), overhead_(overhead) {}

Result<LoadedKernel> LoadedKernel::load(const KernelFacts& facts,
                                        const KernelSideOptions& options) {
  const auto cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  if (cpus > PK_MAX_CPUS)
    return fail("this machine has " + std::to_string(cpus) + " CPUs; pkprof knows up to " +
                std::to_string(PK_MAX_CPUS));
  std::unique_ptr<Parts, PartsFree> parts(new Parts(options));
  if (auto r = parts->tables.make(); !r) return std::unexpected(r.error());
  // The waits that this takes go on while verifiers are at work.
  auto used = std::async(std::launch::async | std::launch::deferred,
                         [&tables = parts->tables] { return tables.put_in_use(); });
  if (auto r = parts->object.load(facts, parts->tables.counts(), parts->tables.stacks()); !r)
    return std::unexpected(r.error());
  if (auto r = used.get(); !r) return std::unexpected(r.error());
  if (auto r = parts->tables.warm(); !r) return std::unexpected(r.error());
  if (options.clients) {
    auto clients = ClientTable::of(bpf_map__fd(parts->object.skeleton->maps.clients));
    if (!clients) return std::unexpected(clients.error());
    parts->clients = std::move(*clients);
  }
  parts->object.introduce();
  if (auto r = parts->calls.map(); !r) return std::unexpected(r.error());
  const HookOverhead overhead = parts->hooks.measure_overhead();
  return LoadedKernel(std::move(parts), overhead);
}

void LoadedKernel::tell_functions(const KnownFunctions* functions) {
  const bool all = functions && functions->missing.empty();
  std::string how = "found";
  if (!functions)
    how = "no kernel symbols";
  else if (!all)
    how = "no symbol for " + functions->missing[0];
  parts_->hooks.note({"kernel symbols for attribution", all, std::move(how),
                      "softirq time is charged to whoever was interrupted"});
  if (!functions) return;
  auto& told = parts_->object.skeleton->bss->addresses;
  // Unused entries lie above every address.
  pk_function unused{};
  unused.start = UINT64_MAX;
  std::ranges::fill(told.functions, unused);
  std::ranges::copy(functions->entries, told.functions);
  std::ranges::copy(functions->timers, told.timer_function);
  std::ranges::copy(functions->known, told.known);
}

Result<KernelSide> LoadedKernel::attach(const KnownFunctions* functions) && {
  tell_functions(functions);
  if (auto r = parts_->hooks.attach(); !r) return std::unexpected(r.error());
  if (auto r = parts_->clocks.open(); !r) return std::unexpected(r.error());
  if (parts_->object.options.hooks) parts_->owners.ask();
  return KernelSide(std::move(parts_));
}

KernelSide::KernelSide(std::unique_ptr<Parts, LoadedKernel::PartsFree> parts)
    : parts_(std::move(parts)) {}

Result<> KernelSide::enable() {
  return parts_->clocks.start();
}

uint64_t KernelSide::disable(WhileOff clock) {
  if (parts_->clocks.enabled()) {
    parts_->calls.count(false);
    parts_->object.find_idle_cpus();
    parts_->object.measure_now();
    parts_->waits.count_ongoing();
  }
  return parts_->clocks.stop(clock);
}

Result<size_t> KernelSide::attach_hooks_again() {
  parts_->object.forget_work();
  if (auto r = parts_->owners.forget(); !r) return std::unexpected(r.error());
  const size_t failed = parts_->hooks.attach_again();
  if (parts_->object.options.hooks) parts_->owners.ask();
  return failed;
}

std::array<std::vector<int>, hook_groups> KernelSide::programs() const {
  std::array<std::vector<int>, hook_groups> all;
  for (size_t g = 0; g < hook_groups; ++g)
    all[g] = parts_->hooks.programs(static_cast<HookGroup>(g));
  std::ranges::copy(parts_->calls.programs(),
                    std::back_inserter(all[static_cast<size_t>(HookGroup::calls)]));
  return all;
}

int KernelSide::mapped() const {
  return bpf_map__fd(parts_->object.skeleton->maps.mapped);
}

pk_stats KernelSide::stats() const {
  return sum_of_stats(parts_->object);
}

std::vector<uint64_t> KernelSide::taken_in_vain() const {
  return pkprof::taken_in_vain(parts_->object);
}

std::vector<double> KernelSide::clock_ns() const {
  return pkprof::clock_ns(parts_->object);
}

KernelHooks& KernelSide::hooks() {
  return parts_->hooks;
}
const KernelHooks& KernelSide::hooks() const {
  return parts_->hooks;
}
SamplingClocks& KernelSide::clocks() {
  return parts_->clocks;
}
const SamplingClocks& KernelSide::clocks() const {
  return parts_->clocks;
}
KernelTables& KernelSide::tables() {
  return parts_->tables;
}
const KernelTables& KernelSide::tables() const {
  return parts_->tables;
}
CallCounting& KernelSide::calls() {
  return parts_->calls;
}
const CallCounting& KernelSide::calls() const {
  return parts_->calls;
}
SocketOwners& KernelSide::owners() {
  return parts_->owners;
}
const SocketOwners& KernelSide::owners() const {
  return parts_->owners;
}
Waits& KernelSide::waits() {
  return parts_->waits;
}
std::optional<pk_peer> KernelSide::peer(uint64_t number) const {
  pk_peer peer;
  const int table = bpf_map__fd(parts_->object.skeleton->maps.peers);
  if (bpf_map_lookup_elem(table, &number, &peer)) return {};
  return peer;
}
std::string KernelSide::lock_name(uint64_t address) {
  pk_lock_name name;
  const int table = bpf_map__fd(parts_->object.skeleton->maps.lock_names);
  if (!bpf_map_lookup_elem(table, &address, &name) && name.text[0])
    return {name.text, strnlen(name.text, sizeof name.text)};
  return parts_->data.name_of(address);
}
std::span<const pk_client> KernelSide::clients() const {
  return parts_->clients.all();
}

const UnwindMaps& KernelSide::unwind() const {
  return parts_->unwind;
}

}  // namespace pkprof
