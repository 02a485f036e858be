// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_symbols.h"

#include <cstring>
#include <fstream>
#include <string>

#include "kernel/kernel_side.h"

namespace pkprof {

Result<KernelSymbols> load_kernel_symbols() {
  auto plain = KernelSymbols::from_proc();
  if (plain) return plain;
  const auto asked = KernelSide::ask_symbols();
  if (!asked) return plain;  // what the user can do about it is in the first error
  std::vector<KernelEntry> entries;
  entries.reserve(asked->size());
  for (const pk_ksym& s : *asked) {
    entries.push_back({.address = s.address,
                       .name = {s.name, strnlen(s.name, sizeof(s.name))},
                       .module = {s.module, strnlen(s.module, sizeof(s.module))},
                       .type = static_cast<char>(s.type)});
  }
  auto symbols = KernelSymbols::from_entries(entries);
  return symbols ? std::move(symbols) : std::move(plain);
}

Result<KernelSymbols> load_bpf_symbols() {
  std::ifstream in("/proc/kallsyms");
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (line.ends_with("[bpf]")) text += line + "\n";
  return KernelSymbols::parse(text);
}

}  // namespace pkprof
