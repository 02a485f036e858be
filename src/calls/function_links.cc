// SPDX-License-Identifier: Apache-2.0
#include "calls/function_links.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <numeric>

namespace pkprof {
namespace {

class Attacher {
 public:
  Attacher(int program, std::span<const uint64_t> addresses, bool exits, int& tries)
      : program_(program),
        addresses_(addresses.begin(), addresses.end()),
        exits_(exits),
        tries_(tries) {}

  FunctionLinks run() {
    attach(0, addresses_.size());
    return std::move(out_);
  }

 private:
  void attach(size_t from, size_t count) {
    if (!count) return;
    LIBBPF_OPTS(bpf_link_create_opts, create);
    create.kprobe_multi.cnt = static_cast<uint32_t>(count);
    create.kprobe_multi.addrs = &addresses_[from];
    create.kprobe_multi.flags = exits_ ? BPF_F_KPROBE_MULTI_RETURN : 0;
    Fd link;
    if (tries_-- > 0) link = Fd(bpf_link_create(program_, 0, BPF_TRACE_KPROBE_MULTI, &create));
    if (link.valid()) {
      out_.links.push_back(std::move(link));
    } else if (count == 1 || tries_ <= 0) {
      out_.refused.resize(out_.refused.size() + count);
      std::iota(out_.refused.end() - static_cast<ptrdiff_t>(count), out_.refused.end(), from);
    } else {
      attach(from, count / 2);
      attach(from + count / 2, count - count / 2);
    }
  }

  int program_;
  std::vector<unsigned long> addresses_;
  bool exits_;
  int& tries_;
  FunctionLinks out_;
};

}  // namespace

FunctionLinks attach_to_functions(int program, std::span<const uint64_t> addresses, bool exits,
                                  int& tries) {
  return Attacher(program, addresses, exits, tries).run();
}

std::optional<FunctionProgram> attach_to_function(const btf* types, const CallTarget& target,
                                                  const bpf_program* fitted, bool exit) {
  if (target.in_module || bpf_program__fd(fitted) < 0) return {};
  int id = 0;
  for (const std::string& name : target.names)
    if (id <= 0) id = btf__find_by_name_kind(types, name.c_str(), BTF_KIND_FUNC);
  if (id <= 0) return {};
  const bpf_attach_type type = exit ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
  LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = type,
              .attach_btf_id = static_cast<uint32_t>(id));
  FunctionProgram attached;
  attached.program =
      Fd(bpf_prog_load(BPF_PROG_TYPE_TRACING, bpf_program__name(fitted), "Dual BSD/GPL",
                       bpf_program__insns(fitted), bpf_program__insn_cnt(fitted), &load));
  if (!attached.program.valid()) return {};
  attached.link = Fd(bpf_link_create(attached.program.get(), 0, type, nullptr));
  if (!attached.link.valid()) return {};
  return attached;
}

}  // namespace pkprof
