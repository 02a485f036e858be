// SPDX-License-Identifier: Apache-2.0
// pkprof needs more memory that is locked, and more descriptors, than a shell allows. It raises its
// own limits; a command that it starts gets those of pkprof's caller back, and the signal mask.
#pragma once

namespace pkprof {

// As far as this process may.
void raise_limits();

// Between fork and exec.
void give_back_callers_limits();

}  // namespace pkprof
