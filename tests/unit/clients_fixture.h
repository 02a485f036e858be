// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/profile.h"

namespace pkprof::test {

// 2 CPUs, 10 s, recorded with clients: a browser whose proxy asks a database and 14 workers, 30
// clients elsewhere, one whose name attacks, and a server that is its own client.
[[nodiscard]] Profile clients_machine();

}  // namespace pkprof::test
