// SPDX-License-Identifier: Apache-2.0
// Names for what brought the kernel here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pkprof {

// "read"; "#1234" for a number this build has no name for. `compat`: of the 32-bit table.
[[nodiscard]] std::string syscall_name(uint16_t number, bool compat);
// Its number, where it has one in that table.
[[nodiscard]] std::optional<uint16_t> syscall_number(const std::string& name, bool compat);
// "NET_RX"; "entry" for PK_VEC_NONE.
[[nodiscard]] std::string_view softirq_name(uint8_t vec);
// For enum pk_reason: "expired", "dropped", ...
[[nodiscard]] std::string_view reason_name(uint8_t reason);
// "kworker" for "kworker/u8:2-events": the name without CPU, pool and current work.
[[nodiscard]] std::string kthread_name(std::string_view comm);
// Kernel threads whose work is the kernel's own: scheduling, RCU, the softirq daemon's loop.
[[nodiscard]] bool kthread_of_kernel(std::string_view name);
// The same for pieces of work, by function.
[[nodiscard]] bool work_of_kernel(std::string_view function);

}  // namespace pkprof
