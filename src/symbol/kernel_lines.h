// SPDX-License-Identifier: Apache-2.0
// Source files and lines of the kernel's code, where its debug information is at hand: a vmlinux
// with the running kernel's build-id, where distributions or who builds kernels put it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "symbol/elf/elf_lines.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class KernelLines {
 public:
  struct Options {
    std::string root;      // prefix for every path, for tests
    std::string release;   // "6.1.0-50-amd64"; "": the running kernel's
    std::string build_id;  // lower-case hex; "": the running kernel's
  };
  // Fails, with a sentence, where there is none. Takes half a second where there is one.
  static Result<KernelLines> open(const KernelSymbols& symbols, const Options& options);
  KernelLines(KernelLines&&) noexcept;
  KernelLines& operator=(KernelLines&&) noexcept;
  ~KernelLines();

  // Of the kernel proper, not of modules. Of a return address, ask for the one before.
  [[nodiscard]] SourceLine find(uint64_t address);

 private:
  struct Impl;
  explicit KernelLines(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
