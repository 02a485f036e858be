// SPDX-License-Identifier: Apache-2.0
#include "kernel/socket_owners.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "kernel/object/kernel_object.h"
#include "kernel/object/read_table.h"
#include "probe/libbpf_log.h"
#include "probe/link.h"

namespace pkprof {

bool SocketOwners::ask() {
  were_told_ = false;
  bpf_program* program = object_.skeleton->progs.pk_iter_sockets;
  if (bpf_program__fd(program) < 0) return false;
  LibbpfLog log;
  const Link link(bpf_program__attach_iter(program, nullptr));
  if (!link) return false;
  const Fd fd(bpf_iter_create(bpf_link__fd(link.get())));
  char buffer[4096];
  uint64_t entered = 0;
  for (ssize_t n = 0; fd.valid() && (n = read(fd.get(), buffer, sizeof(buffer))) > 0;)
    entered += static_cast<uint64_t>(n);
  const uint64_t room = bpf_map__max_entries(object_.skeleton->maps.owners);
  without_room_ = std::max(without_room_, entered - std::min(entered, room));
  return were_told_ = fd.valid();
}

uint64_t SocketOwners::of(uint64_t object) const {
  uint64_t label = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(object_.skeleton->maps.owners), &object, &label)) return 0;
  return label;
}

Result<> SocketOwners::forget() {
  std::vector<std::pair<uint64_t, uint64_t>> owners;
  return read_table(object_.skeleton->maps.owners, Keep::no, owners);
}

}  // namespace pkprof
