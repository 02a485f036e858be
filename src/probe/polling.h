// SPDX-License-Identifier: Apache-2.0
// Threads that keep the kernel from hooking its functions. Where a function's hook is put in or
// taken out, the kernel (seen on 6.1 and 6.12) waits, with no way to be interrupted, until every
// thread has gone to sleep once or has been in user code. A thread that polls for an io_uring does
// neither while it has work, nor for a while after.
#pragma once

#include <string>

namespace pkprof {

// What hooking a function would wait for now, in words; "" where it is nothing that is known. Looks
// at every thread of the machine.
[[nodiscard]] std::string what_hooking_waits_for();

}  // namespace pkprof
