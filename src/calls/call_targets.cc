// SPDX-License-Identifier: Apache-2.0
#include "calls/call_targets.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/fd.h"

namespace pkprof {
namespace {

// What comes before the hook that says which packet it is for. Parts of split functions, too.
constexpr std::array ahead_of_packet = {
    "net_rx_action",
    "__napi_poll",
    "process_backlog",
    "napi_gro_receive",
    "napi_gro_frags",
    "dev_gro_receive",
    "netif_receive_skb",
    "netif_receive_skb_core",
    "netif_receive_skb_internal",
    "netif_receive_skb_list",
    "netif_receive_skb_list_internal",
    "__netif_receive_skb",
    "__netif_receive_skb_core",
    "__netif_receive_skb_one_core",
    "__netif_receive_skb_list",
    "__netif_receive_skb_list_core",
};

// What counting calls on its way into the tables: such calls would be missed, all of them, and
// take time.
constexpr std::array of_counting = {
    "bpf_*",           "__bpf_*",
    "*htab*",          "array_map_*",
    "*pcpu_freelist*", "copy_from_kernel_nofault*",
    "*rcu_read_lock*", "*rcu_read_unlock*",
    "migrate_*able",   "ktime_get_mono_fast_ns",
    "kprobe_multi_*",  "*unit_alloc*",
};

// Names in the symbol table that are no functions.
constexpr std::array no_functions = {"__pfx_*",  "__cfi_*",       "__SC[TK]__*",   "*.cold",
                                     "*.cold.*", "__probestub_*", "__traceiter_*", "__bpf_trace_*"};

bool matches_any(std::span<const char* const> patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const char* pattern) { return fnmatch(pattern, name.c_str(), 0) == 0; });
}

bool is_pattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

bool is_ahead(std::string_view name) {
  const std::string_view whole = name.substr(0, name.find('.'));  // x.constprop.0 is x
  return std::ranges::find(ahead_of_packet, whole) != ahead_of_packet.end();
}

// BPF's programs, and what the tracers put together, are no code of the kernel's own.
bool is_of_kernel(const KernelSymbol& symbol) {
  return symbol.module != "bpf" && !symbol.module.starts_with("__builtin__");
}

// The file system of the tracers, wherever it is mounted, or nowhere: a mount that has no place.
Fd open_tracefs() {
  for (const char* path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    Fd fd(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd.valid() && faccessat(fd.get(), "available_filter_functions", R_OK, 0) == 0) return fd;
  }
  const Fd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context.valid() ||
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0))
    return {};
  return Fd(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
}

}  // namespace

Result<std::vector<CallTarget>> find_call_targets(const KernelSymbols& symbols,
                                                  std::span<const std::string> patterns) {
  std::map<uint64_t, CallTarget> found;
  std::unordered_map<std::string_view, size_t> with_name;
  for (const KernelSymbol& symbol : symbols.all())
    if (is_of_kernel(symbol)) ++with_name[symbol.name];
  const auto add = [&](const KernelSymbol& symbol) {
    CallTarget target{.name = std::string(symbol.name),
                      .address = symbol.start,
                      .in_module = !symbol.module.empty(),
                      .ahead = is_ahead(symbol.name)};
    found.try_emplace(symbol.start, std::move(target));
  };
  for (const std::string& pattern : patterns) {
    bool any = false;
    if (!is_pattern(pattern)) {
      for (const KernelSymbol& symbol : symbols.by_name(pattern)) {
        if (!is_of_kernel(symbol)) continue;
        add(symbol);
        any = true;
      }
    } else {
      for (const KernelSymbol& symbol : symbols.all()) {
        const std::string name(symbol.name);
        if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0 || !is_of_kernel(symbol) ||
            matches_any(no_functions, name) || matches_any(of_counting, name))
          continue;
        add(symbol);
        any = true;
      }
    }
    if (!any) return fail("no function of this kernel is called " + pattern);
  }
  for (const KernelSymbol& symbol : symbols.all()) {
    const auto it = found.find(symbol.start);
    if (it != found.end() && with_name[symbol.name] == 1)
      it->second.names.emplace_back(symbol.name);
  }
  std::vector<CallTarget> targets;
  targets.reserve(found.size());
  for (auto& [address, target] : found) targets.push_back(std::move(target));
  return targets;
}

std::unordered_set<std::string> traceable_functions() {
  std::unordered_set<std::string> names;
  const Fd tracefs = open_tracefs();
  if (!tracefs.valid()) return names;
  const Fd file(openat(tracefs.get(), "available_filter_functions", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return names;
  std::string rest;
  std::vector<char> buffer(1 << 16);
  for (ssize_t n = 0; (n = read(file.get(), buffer.data(), buffer.size())) > 0;) {
    rest.append(buffer.data(), static_cast<size_t>(n));
    size_t from = 0;
    for (size_t end = 0; (end = rest.find('\n', from)) != std::string::npos; from = end + 1)
      names.insert(rest.substr(from, std::min(rest.find(' ', from), end) - from));
    rest.erase(0, from);
  }
  return names;
}

std::vector<std::string> hot_functions(const Profile& profile, size_t most) {
  std::unordered_map<StringId, uint64_t> ns;
  uint64_t all = 0;
  for (const auto& [key, value] : profile.samples()) {
    const auto frames = profile.frames_of(key.stack);
    if (frames.empty() || value.exact_ns || !value.ns) continue;
    const Frame& leaf = profile.frames()[frames.front()];
    if (leaf.kind != FrameKind::kernel || profile.labels()[key.served].kind == LabelKind::idle)
      continue;
    all += value.ns;
    if (leaf.function) ns[leaf.function] += value.ns;
  }
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [function, time] : ns) {
    const std::string& name = profile.text(function);
    if (time * 1000 < all || matches_any(of_counting, name) || matches_any(no_functions, name))
      continue;
    order.emplace_back(time, name);
  }
  std::ranges::sort(order, std::greater());
  if (order.size() > most) order.resize(most);
  std::vector<std::string> names;
  names.reserve(order.size());
  for (auto& [time, name] : order) names.push_back(std::move(name));
  return names;
}

}  // namespace pkprof
