// SPDX-License-Identifier: Apache-2.0
/* ip_count - what the store keeps of a module: counts per address, and per transfer of control. */
#ifndef MP_IP_COUNT_H
#define MP_IP_COUNT_H

#include <stdint.h>

struct mp_ip_count {
	uint64_t vaddr; /* link-time address */
	uint64_t count;
};

/*
 * Transfers of control inside one module that were seen: a branch stack's, another profiler's,
 * callgrind's. Only taken ones (conditional branches that were taken, jumps, calls, returns); what
 * fell through follows from them.
 */
struct mp_edge_count {
	uint64_t from; /* link-time address of the instruction that transfers */
	uint64_t to;   /* link-time address of its target */
	uint64_t count;
	uint64_t mispredicted; /* of count; 0 where nobody could tell */
};

#endif
