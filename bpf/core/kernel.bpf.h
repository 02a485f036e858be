/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel types that are used, with the fields that are used. Every access is relocated to
 * the running kernel's layout (preserve_access_index), so order and size mean nothing here.
 * Fields that only some kernels have are in compat.bpf.h.
 */
#ifndef PKPROF_KERNEL_BPF_H
#define PKPROF_KERNEL_BPF_H

#include "core/kernel_disk.bpf.h"
#include "core/kernel_net.bpf.h"
#include "core/kernel_task.bpf.h"

#endif
