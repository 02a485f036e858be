// SPDX-License-Identifier: Apache-2.0
// What the files of KernelSide share: kernel_side.cc loads and attaches, kernel_tables.cc reads
// what was counted, kernel_ask.cc asks the kernel. No one else includes this.
#pragma once

#include <bpf/libbpf.h>

#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collect/core_types.h"
#include "collect/hooks.h"
#include "collect/kernel_side.h"
#include "pkprof.skel.h"

namespace pkprof {

struct SkeletonFree {
  void operator()(pkprof_bpf* s) const { pkprof_bpf__destroy(s); }
};
struct LinkFree {
  void operator()(bpf_link* l) const { bpf_link__destroy(l); }
};
using Skeleton = std::unique_ptr<pkprof_bpf, SkeletonFree>;
using Link = std::unique_ptr<bpf_link, LinkFree>;

struct KernelSide::Impl {
  Skeleton skeleton;
  std::vector<Link> links;
  struct HookLink {
    const Hook* hook;
    Link link;
  };
  std::vector<HookLink> hook_links;
  Link attach(const Hook& hook);
  uint64_t started = 0;
  uint32_t windows = 0;  // times that hooks were turned on
  uint64_t owners_without_room = 0;
  std::vector<Fd> samplers;
  std::vector<uint32_t> sampled;  // the CPUs they are on
  std::vector<Fd> pinned_programs[hook_groups];
  Room room;
  Fd counts[2];
  Fd stacks[2];
  int active = 0;
  uint32_t cpus = 0;
  KernelSideOptions options;
  std::vector<const Hook*> hooks;  // loaded ones
  Capabilities capabilities;
  std::set<std::string> refused;  // programs, with why

  Result<> open(const KernelFacts& facts, CoreTypes& types);
  Result<> open_and_load(const KernelFacts& facts);
  void choose(const KernelFacts& facts);
  Result<> use_tables(int which, std::launch stacks_update, uint32_t rows = 0);
  void run_everywhere(bpf_program* program);
  void warm_tables();
  void introduce();
  void note(const char* name, bool works, std::string how, const char* costs) {
    capabilities.push_back({name, works, std::move(how), costs});
  }
};

}  // namespace pkprof
