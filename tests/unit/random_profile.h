// SPDX-License-Identifier: Apache-2.0
// Profiles to be written, read and compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/profile.h"

namespace pkprof::test {

// Any profile at all, the same for the same seed: hostile strings, odd frames, deep stacks. With
// `of_hosts` some of its processes are of other machines.
[[nodiscard]] Profile random_profile(uint64_t seed, size_t samples, bool of_hosts = true);

// Everything in a profile that does not depend on the order of its tables.
[[nodiscard]] std::vector<std::string> described(const Profile& profile);

}  // namespace pkprof::test
