// SPDX-License-Identifier: Apache-2.0
// KernelSide: a recording that goes on without a process of ours, and comes back.
#include <bpf/bpf.h>
#include <unistd.h>

#include <functional>
#include <string_view>

#include "kernel/kernel_side_impl.h"
#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

std::string table_path(const std::string& dir, const char* name, int which) {
  return dir + "/table_" + name + "_" + std::to_string(which);
}

std::string program_path(const std::string& dir, size_t group, size_t number) {
  return dir + "/program_" + std::to_string(group) + "_" + std::to_string(number);
}

std::unexpected<Error> failed(const std::string& path, int err = errno) {
  return fail(LibbpfLog().explain("pinning " + path, err));
}

Result<> pin_fd(int fd, const std::string& path) {
  if (bpf_obj_pin(fd, path.c_str())) return failed(path);
  return {};
}

Fd open_pin(const std::string& path) {
  return Fd(bpf_obj_get(path.c_str()));
}

// Both of a pair.
Result<TablePair> open_pair(const std::string& dir, const char* name, const bpf_map* in_use,
                            uint32_t entries) {
  std::array<Fd, 2> tables{open_pin(table_path(dir, name, 0)), open_pin(table_path(dir, name, 1))};
  if (!tables[0].valid() || !tables[1].valid()) return fail_errno("opening the tables in " + dir);
  return TablePair::open(std::move(tables), Fd(dup(bpf_map__fd(in_use))), entries);
}

}  // namespace

Result<> KernelSide::pin(const std::string& dir) {
  const KernelObject& object = parts_->object;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.skeleton->obj) {
    if (!bpf_map__autocreate(map)) continue;  // not there
    if (auto r = pin_fd(bpf_map__fd(map), KernelObject::map_path(dir, bpf_map__name(map))); !r)
      return r;
  }
  for (int i = 0; i < 2; ++i) {
    if (auto r = pin_fd(parts_->tables.counts().fd(i), table_path(dir, "counts", i)); !r) return r;
    if (auto r = pin_fd(parts_->tables.stacks().fd(i), table_path(dir, "stacks", i)); !r) return r;
  }
  const auto by_group = programs();
  for (size_t group = 0; group < hook_groups; ++group)
    for (size_t i = 0; i < by_group[group].size(); ++i)
      if (auto r = pin_fd(by_group[group][i], program_path(dir, group, i)); !r) return r;
  std::vector<bpf_link*> links = parts_->hooks.links();
  for (bpf_link* clock : parts_->clocks.links()) links.push_back(clock);
  for (size_t i = 0; i < links.size(); ++i) {
    const std::string path = dir + "/link_" + std::to_string(i);
    if (const int err = bpf_link__pin(links[i], path.c_str())) return failed(path, -err);
    // What is destroyed with this object is to leave the kernel's as it is: a clock would stop.
    bpf_link__disconnect(links[i]);
  }
  return {};
}

Result<KernelSide> KernelSide::open_pinned(const std::string& dir, const KernelFacts& facts,
                                           const KernelSideOptions& options,
                                           std::vector<uint32_t> sampled) {
  std::unique_ptr<Parts, LoadedKernel::PartsFree> parts(new Parts(options));
  if (auto r = parts->object.open_pinned(dir, facts); !r) return std::unexpected(r.error());
  const TableRoom room = table_room(options, parts->object.cpus);
  const auto& maps = parts->object.skeleton->maps;
  auto counts = open_pair(dir, "counts", maps.counts, room.counts);
  if (!counts) return std::unexpected(counts.error());
  auto stacks = open_pair(dir, "stacks", maps.stacks, room.stacks);
  if (!stacks) return std::unexpected(stacks.error());
  parts->tables.use_pinned(std::move(*counts), std::move(*stacks));
  for (size_t group = 0; group < hook_groups; ++group) {
    std::vector<Fd> programs;
    for (;;) {
      Fd fd = open_pin(program_path(dir, group, programs.size()));
      if (!fd.valid()) break;
      programs.push_back(std::move(fd));
    }
    parts->hooks.use_pinned(static_cast<HookGroup>(group), std::move(programs));
  }
  parts->clocks.use_pinned(std::move(sampled));
  return KernelSide(std::move(parts));
}

uint64_t KernelSide::code() {
  size_t size = 0;
  const void* bytes = pkprof_bpf__elf_bytes(&size);
  return std::hash<std::string_view>{}({static_cast<const char*>(bytes), size});
}

}  // namespace pkprof
