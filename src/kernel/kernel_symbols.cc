// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_symbols.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "kernel/object/kernel_object.h"
#include "probe/libbpf_log.h"
#include "probe/link.h"
#include "probe/program_loader.h"
#include "symbol/elf/at_offset.h"

namespace pkprof {
namespace {

// Through the ksym iterator.
Result<std::vector<pk_ksym>> ask_symbols() {
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

}  // namespace

Result<KernelSymbols> load_kernel_symbols(KernelSymbols::Kind kind) {
  auto plain = KernelSymbols::from_proc(kind);
  if (plain) return plain;
  const auto asked = ask_symbols();
  if (!asked) return plain;  // what the user can do about it is in the first error
  std::vector<KernelEntry> entries;
  entries.reserve(asked->size());
  for (const pk_ksym& s : *asked) {
    entries.push_back({.address = s.address,
                       .name = {s.name, strnlen(s.name, sizeof(s.name))},
                       .module = {s.module, strnlen(s.module, sizeof(s.module))},
                       .type = static_cast<char>(s.type)});
  }
  auto symbols = KernelSymbols::from_entries(entries, kind);
  return symbols ? std::move(symbols) : std::move(plain);
}

std::string KernelData::name_of(uint64_t address) {
  if (!symbols_)
    symbols_ = load_kernel_symbols(KernelSymbols::Kind::data).value_or(KernelSymbols());
  const KernelSymbol* symbol = symbols_->find(address);
  if (!symbol) return "";
  return at_offset(std::string(symbol->name), address - symbol->start);
}

Result<KernelSymbols> load_bpf_symbols() {
  std::ifstream in("/proc/kallsyms");
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (line.ends_with("[bpf]")) text += line + "\n";
  return KernelSymbols::parse(text);
}

}  // namespace pkprof
