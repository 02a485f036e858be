// SPDX-License-Identifier: Apache-2.0
// What -r asks for: addresses, or a function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct AddressRange {
  uint64_t first = 0;
  uint64_t last = 0;  // included
  bool operator==(const AddressRange&) const = default;
};

// "START-END" in hexadecimal digits, with or without 0x. Nothing for what is not of that form; an
// error where END is before START.
[[nodiscard]] std::optional<Result<AddressRange>> parse_range(std::string_view text);

// Whether that is what somebody would call the function: all of its name, or the name without
// parameters, without or with what it is nested in.
[[nodiscard]] bool is_called(std::string_view function, std::string_view name);

// The function in a file: by the name that nm prints, or as reports show it. Fails when there is
// none, or more than one.
[[nodiscard]] Result<AddressRange> range_of_function(const FileCode& code, std::string_view name);

}  // namespace pkprof
