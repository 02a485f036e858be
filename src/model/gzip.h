// SPDX-License-Identifier: Apache-2.0
// gzip in memory. Inflating is bounded: a hostile file claims, it does not get.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pkprof {

[[nodiscard]] Result<std::string> gzip(std::string_view plain);

[[nodiscard]] bool is_gzip(std::string_view bytes);

// Gzip members, one after the other (as `pigz -i` writes them), and nothing after them. Fails,
// without having allocated much more than `limit` bytes, when the contents would be larger than
// that.
[[nodiscard]] Result<std::string> gunzip(std::string_view packed, size_t limit);

}  // namespace pkprof
