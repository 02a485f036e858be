// SPDX-License-Identifier: Apache-2.0
// What rows have of resources other than CPU time, by the second.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "model/profile.h"
#include "report/groups.h"
#include "top/column.h"

namespace pkprof::top {

// The same for the same process, thread or group in every profile.
[[nodiscard]] std::string key_of(const Profile& profile, By by, const Group& group);

class Rates {
 public:
  Rates() = default;
  // Of a profile with all of its resources.
  Rates(const Profile& profile, By by);

  // Bytes or nanoseconds of the whole interval, by a row's key_of(); only of columns of a resource.
  [[nodiscard]] uint64_t amount(const std::string& key, Column column) const;
  // The same of all, also of what was no process's.
  [[nodiscard]] uint64_t total(Column column) const;
  // Whoever used something, and no CPU time, is a row, too: with a sample of no time.
  void add_rows(Profile& cpu) const;

 private:
  using Amounts = std::array<uint64_t, rate_count>;
  struct User {
    Label label;
    uint32_t thread = 0;
    Amounts amounts = {};
  };
  std::map<std::string, User> users_;
  Amounts total_ = {};
};

// "12.3M", of bytes in `ns`, a second; "-" for none.
[[nodiscard]] std::string bytes_a_second(uint64_t bytes, uint64_t ns);
// That, or percent of one CPU's time: as the column has it.
[[nodiscard]] std::string rate_text(Column column, uint64_t amount, uint64_t ns);

}  // namespace pkprof::top
