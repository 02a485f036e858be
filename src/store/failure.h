// SPDX-License-Identifier: Apache-2.0
// Inside a store every step can fail, for the one reason that the database says no. So steps throw,
// and the store's public functions turn that into an Error.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace pkprof::store {

struct Failure {
  std::string message;
};

[[noreturn]] inline void damaged(const std::string& what) {
  throw Failure{"it is damaged: " + what};
}

// What `step` returns, or "NAME: why not".
template <typename Step>
[[nodiscard]] auto as_result(const std::string& name, Step step) -> Result<decltype(step())> {
  try {
    if constexpr (std::is_void_v<decltype(step())>) {
      step();
      return {};
    } else {
      return step();
    }
  } catch (const Failure& failure) {
    return fail(name + ": " + failure.message);
  }
}

}  // namespace pkprof::store
