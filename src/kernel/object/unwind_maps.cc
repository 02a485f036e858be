// SPDX-License-Identifier: Apache-2.0
#include "kernel/object/unwind_maps.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/object/kernel_object.h"
#include "probe/libbpf_log.h"

namespace pkprof {

bool UnwindMaps::wanted() const {
  return object_.skeleton->rodata->config.unwind;
}

Result<> UnwindMaps::put(uint64_t file, size_t blocks, const Fill& fill) const {
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  const Fd table(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_table", sizeof(uint32_t),
                                sizeof(pk_unwind_block), static_cast<uint32_t>(blocks), &options));
  if (!table.valid()) return fail(LibbpfLog().explain("making a table of frames", errno));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (blocks * sizeof(pk_unwind_block) + page - 1) / page * page;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, table.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("filling a table of frames");
  fill({static_cast<pk_unwind_block*>(memory), blocks});
  ::munmap(memory, bytes);
  const int fd = table.get();
  if (bpf_map_update_elem(bpf_map__fd(object_.skeleton->maps.unwind_tables), &file, &fd, BPF_ANY))
    return fail_errno("handing over a table of frames");
  return {};
}

int UnwindMaps::unfinished() const {
  return bpf_map__fd(object_.skeleton->maps.unfinished);
}

void UnwindMaps::remove(uint64_t file) const {
  bpf_map_delete_elem(bpf_map__fd(object_.skeleton->maps.unwind_tables), &file);
}

uint64_t UnwindMaps::used(uint64_t file) const {
  uint32_t id = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(object_.skeleton->maps.unwind_tables), &file, &id)) return 0;
  const Fd table(bpf_map_get_fd_by_id(id));
  constexpr uint32_t head = 0;
  pk_unwind_block block{};
  return bpf_map_lookup_elem(table.get(), &head, &block) ? 0 : block.word[PK_HEAD_USED];
}

}  // namespace pkprof
