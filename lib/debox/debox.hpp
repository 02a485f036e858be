// SPDX-License-Identifier: Apache-2.0
// DeBox for C++; see debox.h.
//
//     debox::On on;                                   // this thread, until the end of the scope
//     auto [n, record] = debox::marked(SYS_read, [&] { return read(fd, buffer, size); });
//     if (record && record->sleeps) std::puts(debox_place(record->sleep[0].place));
#pragma once

#include <cerrno>
#include <concepts>
#include <span>
#include <system_error>
#include <utility>

#include "debox.h"

namespace debox {

using Record = debox_record;

// DeBox is on for this thread as long as this lives. Throws std::system_error as debox_on() fails.
class On {
 public:
  explicit On(const debox_options& options = DEBOX_OPTIONS_INIT) {
    if (debox_on(&options)) throw std::system_error(errno, std::generic_category(), "debox_on");
  }
  ~On() { debox_off(); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;
};

[[nodiscard]] inline std::span<const debox_sleep> sleeps(const Record& record) {
  return {record.sleep, record.sleeps};
}
[[nodiscard]] inline std::span<const debox_fault> faults(const Record& record) {
  return {record.fault, record.faults};
}

// What `call` gives, and its record; nullptr where DeBox is not on. `call` has the habits of the C
// library: below 0 is an error, which is in errno and stays there.
template <typename Call>
  requires std::signed_integral<std::invoke_result_t<Call>>
auto marked(uint32_t number, Call&& call) {
  struct Ends {  // also where the thread is cancelled in the call
    bool ended = false;
    ~Ends() {
      if (!ended) debox_end(-ECANCELED);
    }
  } ends;
  debox_begin(number);
  const auto result = std::forward<Call>(call)();
  const Record* record = debox_end(result < 0 ? -static_cast<int64_t>(errno) : result);
  ends.ended = true;
  return std::pair(result, record);
}

}  // namespace debox
