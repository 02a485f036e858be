// SPDX-License-Identifier: Apache-2.0
// The shared header, with the types it expects.
#pragma once

#include <linux/types.h>

extern "C" {
#include "abi.h"
#include "unwind_abi.h"
}
