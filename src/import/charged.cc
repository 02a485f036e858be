// SPDX-License-Identifier: Apache-2.0
#include "import/charged.h"

#include <vector>

#include "import/contexts.h"

namespace pkprof {

bool is_kernel(std::string_view file, uint64_t address) {
  constexpr uint64_t kernel_half = uint64_t{1} << 63;
  if (file.starts_with("[guest.")) return false;
  std::string_view name = file.substr(file.rfind('/') + 1);
  for (const std::string_view packed : {".gz", ".xz", ".zst"})
    if (name.ends_with(".ko" + std::string(packed))) name.remove_suffix(packed.size());
  return address >= kernel_half || file.starts_with("[kernel") || name.starts_with("vmlinux") ||
         name.ends_with(".ko");
}

std::string_view proper_file(std::string_view file) {
  constexpr std::string_view deleted = " (deleted)";
  if (file.starts_with("[kernel")) return "[kernel.kallsyms]";
  if (file.ends_with(deleted)) file.remove_suffix(deleted.size());
  return file;
}

SampleKey charged(Profile& profile, LabelId ran_on, bool idle,
                  std::span<const ImportedFrame> frames) {
  std::vector<ContextFrame> shown;
  shown.reserve(frames.size());
  for (const ImportedFrame& frame : frames) shown.push_back({frame.function, frame.kernel});
  const Contexts contexts = contexts_of(shown);
  SampleKey key;
  key.ran_on = ran_on;
  std::vector<FrameId> stack;
  const auto put = [&](std::span<const ImportedFrame> part) {
    for (const ImportedFrame& frame : part) stack.push_back(frame.id);
  };
  const auto put_between = [&](const std::string& name) {
    stack.push_back(profile.frame({.kind = FrameKind::pseudo, .function = profile.string(name)}));
  };
  if (contexts.asynchronous) {
    key.source = profile.string(contexts.source);
    key.served = contexts.for_kernel
                     ? LabelId{0}
                     : profile.label({.kind = LabelKind::unclaimed, .reason = "untracked"});
    key.basis = contexts.for_kernel ? Basis::own : Basis::provisional;
    put(frames.first(contexts.asynchronous));
    put_between(contexts.source);
  } else if (idle) {
    key.source = profile.string("idle");
    key.served = key.ran_on;
  } else {
    key.source = profile.string(contexts.entry.empty() ? "user" : contexts.entry);
    key.served = key.ran_on;
    put(frames.first(contexts.kernel));
    if (contexts.kernel) put_between(contexts.entry);
    put(frames.subspan(contexts.kernel));
  }
  key.stack = profile.stack(stack);
  return key;
}

uint64_t fit_time(Meta& meta, uint64_t sampled_ns) {
  uint64_t cpu_ns = 0;
  if (__builtin_mul_overflow(meta.duration_ns, uint64_t{meta.cpus}, &cpu_ns) ||
      cpu_ns > INT64_MAX) {
    meta.degraded.emplace_back(
        "its length is out of range: it is taken for one of what was sampled, of one CPU");
    meta.cpus = 1;
    cpu_ns = meta.duration_ns = sampled_ns;
  }
  if (cpu_ns >= sampled_ns) return cpu_ns - sampled_ns;
  meta.duration_ns = (sampled_ns + meta.cpus - 1) / meta.cpus;
  return 0;
}

void add_rest_of_time(Profile& profile, uint64_t ns) {
  if (!ns) return;
  const LabelId other = profile.label({.kind = LabelKind::other});
  profile.add({.ran_on = other, .served = other, .source = profile.string("unsampled")},
              {.ns = ns});
}

}  // namespace pkprof
