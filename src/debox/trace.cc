// SPDX-License-Identifier: Apache-2.0
#include "debox/trace.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "calls/call_facilities.h"
#include "calls/function_links.h"
#include "pkprof/debox_user_abi.h"
#include "probe/libbpf_log.h"
#include "probe/mapped_table.h"

// What bpftool wrote uses the types of the header above.
#include "debox.skel.h"

namespace pkprof {
namespace {

constexpr uint32_t ring_bytes = 1 << 24;

// To find functions that cannot be attached to among others.
constexpr int most_tries = 400;

}  // namespace

Result<DeboxTraced> choose_traced(const KernelFacts& facts, const KernelSymbols* symbols,
                                  std::span<const std::string> patterns,
                                  std::vector<std::string>& degraded) {
  if (!symbols) return fail("traces take the names of the kernel's functions, which it hides");
  auto functions = find_call_targets(*symbols, patterns);
  if (!functions) return std::unexpected(functions.error());
  const CallFacilities by = find_call_facilities(facts);
  constexpr size_t most_one_by_one = 500;  // ten milliseconds each, or so
  using How = DeboxTraced::How;
  const How how = by.many                                           ? How::at_once
                  : by.each && functions->size() <= most_one_by_one ? How::one_by_one
                                                                    : How::samples;
  if (how == How::samples)
    degraded.push_back("traces are of samples, ten in a millisecond on the CPU: " +
                       (by.each
                            ? "without kprobe.multi, no more than " +
                                  std::to_string(most_one_by_one) + " functions can be attached to"
                            : by.refused));
  return DeboxTraced{.functions = std::move(*functions), .how = how};
}

void DeboxTrace::prepare(debox_bpf& s, const KernelSymbols* symbols) const {
  bpf_program__set_autoload(s.progs.db_function_begins, is(DeboxTraced::How::at_once));
  bpf_program__set_autoload(s.progs.db_function_ends, is(DeboxTraced::How::at_once));
  bpf_program__set_autoload(s.progs.db_function_begins_alone, is(DeboxTraced::How::one_by_one));
  bpf_program__set_autoload(s.progs.db_function_ends_alone, is(DeboxTraced::How::one_by_one));
  bpf_program__set_autoload(s.progs.db_trace_sample, sampled());
  if (!wanted()) return;
  s.rodata->db_config.tracing = 1;
  s.rodata->db_config.sample_ns = sample_ns;
  bpf_map__set_max_entries(s.maps.db_traces, DB_SETS * DB_WAYS * DB_PIECES);
  bpf_map__set_max_entries(s.maps.db_opens, DB_SETS * DB_WAYS);
  bpf_map__set_max_entries(s.maps.db_slow, ring_bytes);
  if (!sampled() || !symbols) return;
  s.rodata->db_config.functions = static_cast<uint32_t>(symbols->size());
  bpf_map__set_max_entries(s.maps.db_functions, static_cast<uint32_t>(symbols->size()));
}

// In order, and which of them are wanted.
Result<> DeboxTrace::tell(const debox_bpf& s, const KernelSymbols* symbols) const {
  if (!s.rodata->db_config.functions) return {};
  MappedTable<uint64_t> table;
  if (auto r = table.map(bpf_map__fd(s.maps.db_functions), symbols->size()); !r) return r;
  std::unordered_set<uint64_t> wanted;
  for (const CallTarget& target : traced_->functions) wanted.insert(target.address);
  size_t i = 0;
  for (const KernelSymbol& symbol : symbols->all())
    table.entries()[i++] = wanted.contains(symbol.start) ? symbol.start : symbol.start & ~DB_WANTED;
  return {};
}

std::vector<std::string> DeboxTrace::attach(const debox_bpf& object, const KernelFacts& facts) {
  if (!wanted() || sampled()) return {};
  std::vector<std::string> refused;
  const std::unordered_set<std::string> traceable = traceable_functions();
  std::vector<const CallTarget*> targets;
  for (const CallTarget& target : traced_->functions) {
    const auto can_be = [&](const std::string& name) { return traceable.contains(name); };
    if (traceable.empty() || can_be(target.name) || std::ranges::any_of(target.names, can_be))
      targets.push_back(&target);
    else
      refused.push_back(target.name);
  }
  if (is(DeboxTraced::How::at_once))
    attach_at_once(object, targets, refused);
  else
    attach_one_by_one(object, facts, targets, refused);
  return refused;
}

// Ends first: a function whose beginning is seen has its end seen.
void DeboxTrace::attach_at_once(const debox_bpf& object, std::vector<const CallTarget*> targets,
                                Names& refused) {
  const auto& progs = object.progs;
  const LibbpfLog quiet;
  int tries = most_tries;
  for (const bool exits : {true, false}) {
    std::vector<uint64_t> addresses;
    addresses.reserve(targets.size());
    for (const CallTarget* target : targets) addresses.push_back(target->address);
    FunctionLinks attached = attach_to_functions(
        bpf_program__fd(exits ? progs.db_function_ends : progs.db_function_begins), addresses,
        exits, tries);
    for (Fd& link : attached.links) links_.push_back(std::move(link));
    for (auto i = attached.refused.rbegin(); i != attached.refused.rend(); ++i) {
      refused.push_back(targets[*i]->name);
      targets.erase(targets.begin() + static_cast<ptrdiff_t>(*i));
    }
  }
}

void DeboxTrace::attach_one_by_one(const debox_bpf& object, const KernelFacts& facts,
                                   const std::vector<const CallTarget*>& targets, Names& refused) {
  const auto& progs = object.progs;
  const LibbpfLog quiet;
  for (const CallTarget* target : targets) {
    auto end = attach_to_function(facts.types(), *target, progs.db_function_ends_alone, true);
    auto begin =
        end ? attach_to_function(facts.types(), *target, progs.db_function_begins_alone, false)
            : std::nullopt;
    if (!begin) {
      refused.push_back(target->name);
      continue;
    }
    for (FunctionProgram* one : {&*end, &*begin}) {
      links_.push_back(std::move(one->link));
      programs_.push_back(std::move(one->program));
    }
  }
}

}  // namespace pkprof
