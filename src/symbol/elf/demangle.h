// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pkprof {

// C++ (Itanium) and Rust (legacy and v0) names; anything else comes back as it is.
// Rust's trailing hash (::h0123456789abcdef) is dropped.
[[nodiscard]] std::string demangle(std::string_view mangled);

}  // namespace pkprof
