// SPDX-License-Identifier: Apache-2.0
// What rows of PK_USAGE are: of which resource, by what name, how much.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/profile.h"
#include "pkprof/user_abi.h"

namespace pkprof {

[[nodiscard]] Resource resource_of(const pk_key& key);
[[nodiscard]] SampleValue value_of(const pk_key& key, const pk_count& count);
// "disk:read", "net:received", "memory:page cache", "lock:mutex". `functions`: of the kernel stack,
// innermost first.
[[nodiscard]] std::string usage_source(const pk_key& key,
                                       std::span<const std::string_view> functions);

// A wait for a lock of a program's or of a file: the same as waiting for a lock, and who let it go
// as who held it. `row`: the wait's. Of locks of the kernel itself there are rows of their own.
[[nodiscard]] std::optional<SampleKey> as_lock(Profile& profile, const SampleKey& wait,
                                               const pk_key& row);

// Names of disks and of network interfaces, as they are now.
class DeviceNames {
 public:
  // "vda", "eth0"; "disk 259:0", "interface 3" where the device is gone. Of a row of such.
  [[nodiscard]] const std::string& of(const pk_key& key);

 private:
  std::map<std::pair<bool, uint32_t>, std::string> names_;  // by whether it is a disk
};

}  // namespace pkprof
