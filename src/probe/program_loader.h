// SPDX-License-Identifier: Apache-2.0
// Loads the programs of a BPF object side by side.
//
// To verify them is most of what a start takes. The kernel does it for several threads at once;
// libbpf loads one program after the other, and reads all of the kernel's types to look for the
// tracepoints in them. So libbpf loads two instructions in each program's place. The program
// itself, as libbpf has prepared it, is loaded here, and takes over the descriptor.
#pragma once

#include <string>
#include <vector>

#include "probe/facts.h"

struct bpf_object;
struct bpf_program;

namespace pkprof {

class ProgramLoader {
 public:
  // Before any object is opened: from then on libbpf leaves these kinds of programs to us.
  static void take_over();

  // Before libbpf loads the object. `facts` and the object are to outlive it.
  explicit ProgramLoader(const KernelFacts& facts);
  ~ProgramLoader();
  ProgramLoader(const ProgramLoader&) = delete;
  ProgramLoader& operator=(const ProgramLoader&) = delete;

  struct Refused {
    std::string program;
    int error = 0;
  };
  // After libbpf has loaded the object. Returns what the kernel refuses.
  [[nodiscard]] std::vector<Refused> load();

 private:
  struct Job;
  struct Callbacks;
  const KernelFacts& facts_;
  std::vector<Job> jobs_;
};

}  // namespace pkprof
