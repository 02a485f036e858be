// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/profile.h"

namespace pkprof::test {

// 2 CPUs, 5 s, recorded with waits: a worker asks a database, which reads its disk and waits for
// the worker in its turn; a hog in their way; one whose name attacks, and 30 who wait for it.
[[nodiscard]] Profile waits_machine();

}  // namespace pkprof::test
