// SPDX-License-Identifier: Apache-2.0
// A cut: the profile of one machine over one interval, as an agent takes it again and again. It is
// what is put into a store and what is deleted from it, always whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/profile.h"

namespace pkprof {

// Identity: (host, boot_id, start_unix_ns). Its profile is of that one host, so that none of its
// labels has a Label::host.
struct Cut {
  std::string host;
  std::string boot_id;  // of /proc/sys/kernel/random/boot_id; "" where it is not known
  uint64_t start_unix_ns = 0;
  std::map<std::string, std::string> labels;  // what people say of it: env=prod, rack=7
  Profile profile;
};

}  // namespace pkprof
