// SPDX-License-Identifier: Apache-2.0
// Recordings copied into others: two of one machine as one, and one with other names
// or keys.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// Adds to a recording a later one, as if there had been no time between them. Fails, and leaves
// `before` as it is, where the two are not of one machine: the ledger sums to CPUs x duration.
[[nodiscard]] Result<> merge(Profile& before, const Profile& later);

// The same recording, in which the function of a frame has the name that is given, if one is.
using NameOfFrame = std::function<std::optional<std::string>(const Frame&)>;
[[nodiscard]] Profile renamed(const Profile& profile, const NameOfFrame& name_of);

// The same recording, in which samples count under what `new_key` makes of their keys. It may add
// to the new profile's tables.
using NewKey = std::function<void(Profile& to, SampleKey& key)>;
[[nodiscard]] Profile rekeyed(const Profile& profile, const NewKey& new_key);

// CPU time where it has any, or nothing at all; else what its first sample is of.
[[nodiscard]] Resource resource_of(const Profile& profile);
[[nodiscard]] bool has_resource(const Profile& profile, Resource resource);
// The same recording, of one of its resources alone.
[[nodiscard]] Profile of_resource(Profile profile, Resource resource);

}  // namespace pkprof
