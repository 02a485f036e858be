// SPDX-License-Identifier: Apache-2.0
// What locks of the kernel are called, by their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

namespace pkprof {

class LockNames {
 public:
  // "" where it has no name. The kernel side forgets what locks belong to.
  using Fetch = std::function<std::string(uint64_t address)>;

  void ask(Fetch fetch) { fetch_ = std::move(fetch); }
  // A row has this lock: its name is asked for while it is there.
  void meet(uint64_t address);
  // Its name; else its address, "0xffff888100e3d710".
  [[nodiscard]] std::string of(uint64_t address) const;

  [[nodiscard]] static std::string by_address(uint64_t address);

 private:
  static constexpr size_t most = 65536;

  Fetch fetch_;
  std::unordered_map<uint64_t, std::string> known_;
};

}  // namespace pkprof
