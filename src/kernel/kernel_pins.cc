// SPDX-License-Identifier: Apache-2.0
// KernelSide: a recording that goes on without a process of ours, and comes back.
#include <bpf/bpf.h>
#include <unistd.h>

#include <string_view>

#include "base/clock.h"
#include "kernel/kernel_side_impl.h"
#include "kernel/program_loader.h"
#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

// The kernel keeps names with dots for itself.
std::string path_of(const std::string& dir, const char* kind, std::string name) {
  for (char& c : name)
    if (c == '.') c = '_';
  return dir + "/" + kind + "_" + name;
}

std::string table_path(const std::string& dir, const char* name, int which) {
  return path_of(dir, "table", name + std::string("_") + std::to_string(which));
}

std::string program_path(const std::string& dir, size_t group, size_t number) {
  return path_of(dir, "program", std::to_string(group) + "_" + std::to_string(number));
}

std::unexpected<Error> failed(const std::string& path, int err = errno) {
  return fail(LibbpfLog().explain("pinning " + path, err));
}

Fd open_pin(const std::string& path) {
  return Fd(bpf_obj_get(path.c_str()));
}

uint32_t id_of(const Fd& map) {
  bpf_map_info info{};
  uint32_t size = sizeof(info);
  return bpf_obj_get_info_by_fd(map.get(), &info, &size) ? 0 : info.id;
}

}  // namespace

Result<> KernelSide::pin(const std::string& dir) {
  Impl& m = *impl_;
  const auto pin_fd = [](int fd, const std::string& path) -> Result<> {
    if (bpf_obj_pin(fd, path.c_str())) return failed(path);
    return {};
  };
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, m.skeleton->obj) {
    if (!bpf_map__autocreate(map)) continue;  // not there
    const std::string path = path_of(dir, "map", bpf_map__name(map));
    if (auto r = pin_fd(bpf_map__fd(map), path); !r) return r;
  }
  for (int i = 0; i < 2; ++i) {
    if (auto r = pin_fd(m.counts[i].get(), table_path(dir, "counts", i)); !r) return r;
    if (auto r = pin_fd(m.stacks[i].get(), table_path(dir, "stacks", i)); !r) return r;
  }
  for (size_t group = 0; group < hook_groups; ++group) {
    const std::vector<int> programs = hook_programs(static_cast<HookGroup>(group));
    for (size_t i = 0; i < programs.size(); ++i)
      if (auto r = pin_fd(programs[i], program_path(dir, group, i)); !r) return r;
  }
  size_t links = 0;
  const auto pin_link = [&](bpf_link* link) -> Result<> {
    const std::string path = path_of(dir, "link", std::to_string(links++));
    if (const int err = bpf_link__pin(link, path.c_str())) return failed(path, -err);
    // What is destroyed with this object is to leave the kernel's as it is: a clock would stop.
    bpf_link__disconnect(link);
    return {};
  };
  for (const Impl::HookLink& h : m.hook_links)
    if (auto r = pin_link(h.link.get()); !r) return r;
  for (const Link& link : m.links)
    if (auto r = pin_link(link.get()); !r) return r;
  return {};
}

Result<KernelSide> KernelSide::open_pinned(const std::string& dir, const KernelFacts& facts,
                                           const KernelSideOptions& options,
                                           std::vector<uint32_t> sampled) {
  auto impl = std::make_unique<Impl>();
  Impl& m = *impl;
  m.options = options;
  m.cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  m.room = room_for(options, m.cpus);
  m.sampled = std::move(sampled);
  CoreTypes types;  // until it is loaded
  if (auto r = m.open(facts, types); !r) return std::unexpected(r.error());
  if (auto r = m.share_memory_with_debox(); !r) return std::unexpected(r.error());
  m.tell_mappings();
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, m.skeleton->obj) {
    if (!bpf_map__autocreate(map)) continue;
    const std::string path = path_of(dir, "map", bpf_map__name(map));
    const Fd fd = open_pin(path);
    if (!fd.valid() || bpf_map__reuse_fd(map, fd.get())) return fail_errno("opening " + path);
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, m.skeleton->obj) bpf_program__set_autoload(
      program, program == m.skeleton->progs.pk_look ||
                   (options.hooks && program == m.skeleton->progs.pk_iter_sockets));
  LibbpfLog log;
  ProgramLoader loader(facts);
  if (const int err = pkprof_bpf__load(m.skeleton.get()))
    return fail(log.explain("opening the recording in " + dir, -err));
  if (const auto refused = loader.load(); !refused.empty())
    return fail(log.explain("opening the recording in " + dir, refused.front().error));
  for (int i = 0; i < 2; ++i) {
    m.counts[i] = open_pin(table_path(dir, "counts", i));
    m.stacks[i] = open_pin(table_path(dir, "stacks", i));
    if (!m.counts[i].valid() || !m.stacks[i].valid())
      return fail_errno("opening the tables in " + dir);
  }
  m.counts_in_use = Fd(dup(bpf_map__fd(m.skeleton->maps.counts)));
  m.stacks_in_use = Fd(dup(bpf_map__fd(m.skeleton->maps.stacks)));
  const uint32_t zero = 0;
  uint32_t in_use = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(m.skeleton->maps.counts), &zero, &in_use))
    return fail_errno("finding the table in use");
  m.active = m.active_stacks = in_use == id_of(m.counts[1]) ? 1 : 0;
  for (size_t group = 0; group < hook_groups; ++group) {
    for (size_t i = 0;; ++i) {
      Fd fd = open_pin(program_path(dir, group, i));
      if (!fd.valid()) break;
      m.pinned_programs[group].push_back(std::move(fd));
    }
  }
  m.started = m.skeleton->bss->started;
  return KernelSide(std::move(impl));
}

void KernelSide::stop() {
  auto* bss = impl_->skeleton->bss;
  if (bss->stopped) return;
  impl_->look_at_cpus();
  bss->stopped = monotonic_ns();
}

uint64_t KernelSide::started() const {
  return impl_->skeleton->bss->started;
}

uint64_t KernelSide::stopped() const {
  return impl_->skeleton->bss->stopped;
}

const std::vector<uint32_t>& KernelSide::sampled() const {
  return impl_->sampled;
}

uint32_t KernelSide::rows() const {
  return impl_->skeleton->bss->rows;
}

KernelSide::Room KernelSide::room() const {
  return impl_->room;
}

uint64_t KernelSide::code() {
  size_t size = 0;
  const void* bytes = pkprof_bpf__elf_bytes(&size);
  return std::hash<std::string_view>{}({static_cast<const char*>(bytes), size});
}

}  // namespace pkprof
