// SPDX-License-Identifier: Apache-2.0
#include "attribution/usage/lock_names.h"

#include <cstdio>

namespace pkprof {

void LockNames::meet(uint64_t address) {
  if (fetch_ && known_.size() < most && !known_.contains(address))
    known_.emplace(address, fetch_(address));
}

std::string LockNames::of(uint64_t address) const {
  const auto it = known_.find(address);
  return it == known_.end() || it->second.empty() ? by_address(address) : it->second;
}

std::string LockNames::by_address(uint64_t address) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace pkprof
