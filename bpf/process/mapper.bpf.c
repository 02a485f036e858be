// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process/mapper.bpf.h"

struct mappers_map mappers SEC(".maps");
struct mapped_ring mapped SEC(".maps");
