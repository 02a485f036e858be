// SPDX-License-Identifier: Apache-2.0
// Programs that speak to pkprof debox without the library, as another user, and do not keep to what
// the library does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/fd.h"
#include "debox/debox_record.h"
#include "debox/debox_wire.h"

namespace pkprof::live {

constexpr uid_t nobody = 65534;

// Forks a process of another user that runs `act` and exits with what it returns. It is dumpable,
// as a program that its user started.
[[nodiscard]] pid_t fork_as(uid_t user, const std::function<int()>& act);
int wait_for(pid_t pid);
[[nodiscard]] int run_as(uid_t user, const std::function<int()>& act);

[[nodiscard]] Fd new_socket();
// The process that connects is the one that is served, whoever else has the socket. Returns an
// errno, or 0.
[[nodiscard]] int connect_to(const Fd& socket, const std::string& name);

[[nodiscard]] int take_name(const Fd& socket, const std::string& name);

[[nodiscard]] debox_wire_request ask_for_all(pid_t tid, uint32_t records);

struct Answer {
  debox_wire_answer answer{};
  Fd memory;
};
// None: it is gone, or what was asked makes no sense to it.
[[nodiscard]] std::optional<Answer> ask(const Fd& socket, const debox_wire_request& request);

// Pages that this process has, or a child that was forked has as it was.
class OwnPages {
 public:
  OwnPages();
  [[nodiscard]] bool has(uint64_t address) const;

 private:
  std::set<std::pair<uint64_t, uint64_t>> ranges_;
};

// What is in memory that was handed over of calls that ended (but for asking for the time, which is
// a system call on some machines), and of pages that are not `own`.
[[nodiscard]] bool says_something(const Fd& memory, const debox_wire_request& asked,
                                  uint32_t stride, const OwnPages& own);

// How a program comes by what its user has not.
enum class Gain { user, group, capability };
[[nodiscard]] bool make_privileged(const std::string& file, Gain gain);

}  // namespace pkprof::live
