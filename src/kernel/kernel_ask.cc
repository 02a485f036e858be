// SPDX-License-Identifier: Apache-2.0
// KernelSide: what the kernel is asked for.
#include <bpf/bpf.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "kernel/kernel_side_impl.h"
#include "kernel/program_loader.h"
#include "probe/entering.h"
#include "probe/hook_overhead.h"
#include "probe/libbpf_log.h"

namespace pkprof {

HookOverhead KernelSide::measure_overhead() {
  if (impl_->options.hooks)
    impl_->skeleton->bss->entering_ns = static_cast<uint32_t>(measure_entering_ns());
  bpf_link* empty = nullptr;
  const HookOverhead overhead = pkprof::measure_overhead(impl_->skeleton->progs.pk_empty, &empty);
  impl_->empty.reset(empty);
  return overhead;
}

bool KernelSide::ask_owners() {
  bpf_program* program = impl_->skeleton->progs.pk_iter_sockets;
  if (bpf_program__fd(program) < 0) return false;
  LibbpfLog log;
  Link link(bpf_program__attach_iter(program, nullptr));
  if (!link) return false;
  const Fd fd(bpf_iter_create(bpf_link__fd(link.get())));
  char buffer[4096];
  uint64_t entered = 0;
  for (ssize_t n = 0; fd.valid() && (n = read(fd.get(), buffer, sizeof(buffer))) > 0;)
    entered += static_cast<uint64_t>(n);
  const uint64_t room = bpf_map__max_entries(impl_->skeleton->maps.owners);
  impl_->owners_without_room =
      std::max(impl_->owners_without_room, entered - std::min(entered, room));
  return fd.valid();
}

uint64_t KernelSide::owners_without_room() const {
  return impl_->owners_without_room;
}

Result<std::vector<pk_ksym>> KernelSide::ask_symbols() {
  LibbpfLog log;
  ProgramLoader::take_over();
  const Skeleton s(pkprof_bpf__open());
  if (!s) return fail_errno("opening the kernel side");
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s->obj)
      bpf_program__set_autoload(program, program == s->progs.pk_iter_ksyms);
  if (const int err = pkprof_bpf__load(s.get())) return fail(log.explain("symbol iterator", -err));
  const Link link(bpf_program__attach_iter(s->progs.pk_iter_ksyms, nullptr));
  if (!link) return fail(log.explain("symbol iterator", errno));
  const Fd fd(bpf_iter_create(bpf_link__fd(link.get())));
  if (!fd.valid()) return fail_errno("symbol iterator");
  std::vector<pk_ksym> symbols(1024);
  size_t bytes = 0;
  for (;;) {
    if (symbols.size() * sizeof(pk_ksym) - bytes < 65536) symbols.resize(symbols.size() * 2);
    const ssize_t n = read(fd.get(), reinterpret_cast<char*>(symbols.data()) + bytes, 65536);
    if (n <= 0) break;
    bytes += static_cast<size_t>(n);
  }
  symbols.resize(bytes / sizeof(pk_ksym));
  return symbols;
}

}  // namespace pkprof
