// SPDX-License-Identifier: Apache-2.0
// debox_abi.h as user space includes it.
#pragma once

#include <linux/types.h>

#include "pkprof/debox_abi.h"
