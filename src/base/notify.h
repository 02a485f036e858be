// SPDX-License-Identifier: Apache-2.0
// What a service says to whoever started it, by the protocol of sd_notify(3): a datagram to the
// socket that NOTIFY_SOCKET names. Without one nothing is said. No library: libsystemd would be a
// dependency of a program that also runs where there is no systemd.
#pragma once

#include <string_view>

namespace pkprof {

// "READY=1", "WATCHDOG=1", "STATUS=…"; several, by newlines.
void notify_service_manager(std::string_view state);

}  // namespace pkprof
