/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Samples of the network's work.
 *
 * The rules, by where the sample fell:
 *
 *   in a packet, after a hook named its socket    that socket
 *   in a packet, before                           the socket that the next hook names; failing
 *                                                 that, the connection in the packet's headers
 *   taking a packet from a driver                 that packet: see pk_handed_over
 *   receiving, outside any packet                 as for the next packet of this run; if none
 *                                                 comes: in the loop over the backlog as for the
 *                                                 last one, elsewhere those whose packets this CPU
 *                                                 handles, by votes
 *   in a packet on its way out                    the packet's socket; none: forwarded
 *   telling other CPUs of packets for them        the socket of the packet sent last; none if a
 *                                                 driver has handed over one since
 *   a socket's timer                              the timer's socket
 *   after the last high-resolution timer          as for that one
 *   sending deferred to a softirq                 the socket of the next packet queued; if none
 *                                                 comes, as pk_deferred_sender() guesses
 *
 * Two kinds of hooks rest while hardly any sample needs them (enum pk_rest). While those on packets
 * do, the packet is the one that the stack is at (packet.bpf.h), its socket the one named last, if the
 * packet is addressed to it alone, and a packet ends when the kernel's count of packets grows. While
 * those on sending do, what a softirq does at the end of a task's own sending is for that task.
 */
#ifndef PKPROF_NET_SAMPLE_BPF_H
#define PKPROF_NET_SAMPLE_BPF_H

#include "net/cpu_account.bpf.h"

/* A sample in receiving, sending or a socket's timer, in a softirq or a threaded NAPI. */
int pk_net_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge);

#endif
