// SPDX-License-Identifier: Apache-2.0
// The process's connection to pkprof, which its threads share.
#ifndef DEBOX_CONNECTION_H
#define DEBOX_CONNECTION_H

#include "debox_wire.h"

// Asks pkprof, to which it connects first where it has not yet. Returns 0, or an errno: the
// answer's, or ECONNREFUSED where nobody answers; the connection that fails is gone. `memory`: a
// descriptor that came with the answer, or -1. Without `wait`, EAGAIN while another thread asks.
int ask_pkprof(const struct debox_wire_request* request, struct debox_wire_answer* answer,
               int* memory, int wait);

// In a process that was begun by fork(): its parent's connection is not its own.
void forget_connection(void);

#endif
