// SPDX-License-Identifier: Apache-2.0
// Errors that can happen are values: a Result carries either what was asked for or one
// sentence for the user (what failed, why, what to do). Only main() turns it into an exit.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace pkprof {

struct Error {
  std::string message;

  // "reading /proc/kallsyms: permission denied": the outer step before the inner cause.
  [[nodiscard]] Error in(std::string_view step) const {
    return Error{std::string(step) + ": " + message};
  }
};

template <typename T = void>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(std::string message) {
  return std::unexpected(Error{std::move(message)});
}

// An error from the C library; `err` is an errno value (not negated).
[[nodiscard]] inline std::unexpected<Error> fail_errno(std::string_view what, int err = errno) {
  return std::unexpected(Error{std::string(what) + ": " + std::strerror(err)});
}

}  // namespace pkprof
