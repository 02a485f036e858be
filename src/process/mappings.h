// SPDX-License-Identifier: Apache-2.0
// What sampled processes have mapped where their stacks lead, and files' names, as the kernel side
// tells it the first time that it meets them (bpf/process/mapping.bpf.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "pkprof/user_abi.h"
#include "process/sideband.h"

struct ring_buffer;

namespace pkprof {

// The path that a record of names tells: "/usr/bin/x", "/tmp/y (deleted)"; "" if it is malformed.
// Where directories are missing it does not begin with a slash.
[[nodiscard]] std::string path_in(std::string_view record);

class Mappings {
 public:
  // The kernel side's ring, which outlives this.
  static Result<Mappings> open(int ring);
  Mappings(Mappings&&) noexcept;
  Mappings& operator=(Mappings&&) noexcept;
  ~Mappings();

  // Is told of each mapping of a file, or of the vdso, as the ring is emptied.
  struct Code {
    uint64_t file = 0;  // its number
    uint32_t pid = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t inode = 0;
    std::string path;
  };
  void tell(std::function<void(const Code&)> told);
  // Empties the ring, so that poll_fd() says no more that it is readable.
  void collect();
  // Everything told so far, by no order; of the kind ProcessEvent::Kind::code.
  [[nodiscard]] std::vector<ProcessEvent> take();
  // Of a file by its number; "" if it is not known.
  [[nodiscard]] std::string path_of(uint64_t file) const;
  // Becomes readable when the ring is half full.
  [[nodiscard]] int poll_fd() const;

 private:
  struct Impl;
  explicit Mappings(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
