// SPDX-License-Identifier: Apache-2.0
// A control group for memory, of either hierarchy: its limit, its members, and what the kernel
// counts of it. Whatever is left in it is killed with the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace pkprof::accuracy {

class MemoryHierarchy;

class MemoryGroup {
 public:
  enum class OnFull : uint8_t { kill, wait };  // the OOM killer; wait: hierarchy 1 alone

  // Its members have so much memory together; 0: no limit.
  [[nodiscard]] static Result<MemoryGroup> create(uint64_t bytes = 0, OnFull = OnFull::kill);
  ~MemoryGroup();
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&&) = delete;

  void add(int pid) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t used() const;  // bytes
  [[nodiscard]] uint64_t anonymous() const;
  [[nodiscard]] uint64_t page_cache() const;  // with shared memory

 private:
  MemoryGroup(std::shared_ptr<MemoryHierarchy> hierarchy, std::string path)
      : hierarchy_(std::move(hierarchy)), path_(std::move(path)) {}
  [[nodiscard]] uint64_t counter(const char* name) const;  // of memory.stat

  std::shared_ptr<MemoryHierarchy> hierarchy_;
  std::string path_;
};

}  // namespace pkprof::accuracy
