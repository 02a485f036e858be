// SPDX-License-Identifier: Apache-2.0
#include "kernel/object/waits.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/object/kernel_object.h"
#include "probe/libbpf_log.h"
#include "probe/link.h"

namespace pkprof {

std::optional<pk_waker> Waits::waker(uint64_t number) const {
  pk_waker waker;
  if (bpf_map_lookup_elem(bpf_map__fd(object_.skeleton->maps.wakers), &number, &waker)) return {};
  return waker;
}

void Waits::count_ongoing() {
  bpf_program* program = object_.skeleton->progs.pk_iter_waits;
  if (!object_.options.waits || bpf_program__fd(program) < 0) return;
  LibbpfLog log;
  const Link link(bpf_program__attach_iter(program, nullptr));
  if (!link) return;
  const Fd fd(bpf_iter_create(bpf_link__fd(link.get())));
  char nothing[64];
  while (fd.valid() && read(fd.get(), nothing, sizeof(nothing)) > 0) continue;
}

}  // namespace pkprof
