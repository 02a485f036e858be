// SPDX-License-Identifier: Apache-2.0
#include "kernel/object/table_pair.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <string>
#include <utility>

#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

// To make an element when it is needed and free it when it is read takes a microsecond, and an
// interrupt for every dozen of stacks: those of a small table are made at once, a kilobyte each.
bool are_made_at_once(uint32_t entries) {
  constexpr uint32_t most_made_at_once = 16384;
  return entries <= most_made_at_once;
}

uint32_t id_of(const Fd& map) {
  bpf_map_info info{};
  uint32_t size = sizeof(info);
  return bpf_obj_get_info_by_fd(map.get(), &info, &size) ? 0 : info.id;
}

}  // namespace

Result<TablePair> TablePair::make(const Shape& shape) {
  TablePair pair;
  pair.entries_ = shape.entries;
  LIBBPF_OPTS(bpf_map_create_opts, options);
  if (!are_made_at_once(shape.entries)) options.map_flags = BPF_F_NO_PREALLOC;
  const std::string name = std::string("pk_") + shape.name;
  for (Fd& table : pair.tables_)
    table = Fd(bpf_map_create(BPF_MAP_TYPE_HASH, name.c_str(), shape.key, shape.value,
                              shape.entries, &options));
  LIBBPF_OPTS(bpf_map_create_opts, outer,
              .inner_map_fd = static_cast<uint32_t>(pair.tables_[0].get()));
  pair.in_use_ = Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, shape.name, sizeof(uint32_t),
                                   sizeof(uint32_t), 1, &outer));
  if (!pair.tables_[0].valid() || !pair.tables_[1].valid() || !pair.in_use_.valid())
    return fail(LibbpfLog().explain("making the kernel side's tables", errno));
  return pair;
}

Result<TablePair> TablePair::open(std::array<Fd, 2> tables, Fd in_use, uint32_t entries) {
  TablePair pair;
  const uint32_t zero = 0;
  uint32_t id = 0;
  if (bpf_map_lookup_elem(in_use.get(), &zero, &id)) return fail_errno("finding the table in use");
  pair.used_ = id == id_of(tables[1]) ? 1 : 0;
  pair.tables_ = std::move(tables);
  pair.in_use_ = std::move(in_use);
  pair.entries_ = entries;
  return pair;
}

Result<> TablePair::use(int which) {
  const uint32_t zero = 0;
  const int table = fd(which);
  if (bpf_map_update_elem(in_use_.get(), &zero, &table, BPF_ANY))
    return fail_errno("giving the kernel side a table");
  used_ = which;
  return {};
}

bool TablePair::is_made_at_once() const {
  return are_made_at_once(entries_);
}

}  // namespace pkprof
