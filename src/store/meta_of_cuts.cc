// SPDX-License-Identifier: Apache-2.0
#include "store/meta_of_cuts.h"

#include <algorithm>
#include <map>

#include "store/failure.h"

namespace pkprof::store {
namespace {

constexpr size_t most_names = 8;

// What is known of one host.
struct OfHost {
  uint32_t cpus = 0;
  uint64_t duration_ns = 0;
  uint64_t paused_ns = 0;
  uint64_t unwatched_ns = 0;
};

void add(uint64_t& to, uint64_t value) {
  if (__builtin_add_overflow(to, value, &to) || to > INT64_MAX)
    throw Failure{"its cuts add up to too much"};
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// A time of one CPU, from times that differ by host: each counts as often as the host has CPUs.
uint64_t mean(const std::map<std::string, OfHost>& hosts, uint64_t OfHost::* time, uint64_t cpus) {
  unsigned __int128 sum = 0;
  for (const auto& [name, host] : hosts)
    sum += static_cast<unsigned __int128>(host.*time) * host.cpus;
  return cpus == 0 ? 0 : static_cast<uint64_t>((sum + cpus / 2) / cpus);
}

}  // namespace

std::string names_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most_names); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most_names)
    text += " and " + std::to_string(names.size() - most_names) + " more";
  return text;
}

Meta meta_of(std::span<const CutRow> cuts) {
  Meta meta{.start_unix_ns = cuts.front().start_unix_ns};
  std::map<std::string, OfHost> hosts;
  std::vector<std::string> host_names;
  std::vector<std::string> kernels;
  uint64_t cpu_ns = 0;
  for (const CutRow& cut : cuts) {
    if (cut.measured != cuts.front().measured)
      throw Failure{"some of these cuts were sampled, others measured by `stat`; ask for either"};
    OfHost& host = hosts[cut.host];
    host.cpus = std::max(host.cpus, cut.cpus);
    add(host.duration_ns, cut.duration_ns);
    add(host.paused_ns, cut.paused_ns);
    add(host.unwatched_ns, cut.unwatched_ns);
    add(cpu_ns, cut.cpu_ns);
    add_name(host_names, cut.host);
    add_name(kernels, cut.kernel);
    meta.start_unix_ns = std::min(meta.start_unix_ns, cut.start_unix_ns);
    meta.frequency_hz = cut.frequency_hz;
    if (meta.command.empty()) meta.command = cut.command;
    if (meta.counted_by.empty()) meta.counted_by = cut.counted_by;
    meta.counted_functions = std::max(meta.counted_functions, cut.counted_functions);
    add(meta.samples_taken, cut.samples_taken);
    add(meta.samples_lost, cut.samples_lost);
    add(meta.cost_kernel_ns, cut.cost_kernel_ns);
    add(meta.cost_user_ns, cut.cost_user_ns);
  }
  meta.measured = cuts.front().measured != 0;
  std::ranges::sort(host_names);
  meta.host = names_of(host_names);
  meta.kernel = names_of(kernels);
  uint64_t cpus = 0;
  for (const auto& [name, host] : hosts) cpus += host.cpus;
  if (cpus > UINT32_MAX) throw Failure{"its hosts have too many CPUs"};
  meta.cpus = static_cast<uint32_t>(cpus);
  if (hosts.size() == 1) {
    meta.duration_ns = hosts.begin()->second.duration_ns;
    meta.paused_ns = hosts.begin()->second.paused_ns;
    meta.unwatched_ns = hosts.begin()->second.unwatched_ns;
  } else {
    meta.duration_ns = mean(hosts, &OfHost::duration_ns, cpus);
    meta.paused_ns = mean(hosts, &OfHost::paused_ns, cpus);
    meta.unwatched_ns = mean(hosts, &OfHost::unwatched_ns, cpus);
  }
  uint64_t product = 0;
  if (__builtin_mul_overflow(cpus, meta.duration_ns, &product) || product != cpu_ns)
    meta.all_cpu_ns = cpu_ns;
  return meta;
}

}  // namespace pkprof::store
