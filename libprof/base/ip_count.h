// SPDX-License-Identifier: Apache-2.0
/* ip_count - the records that the store keeps of a module: counts of addresses, transfers and ways. */
#ifndef MP_IP_COUNT_H
#define MP_IP_COUNT_H

#include <stdint.h>

struct mp_ip_count {
	uint64_t vaddr; /* link-time address */
	uint64_t count;
};

/*
 * Observed transfers of control inside one module, from branch stacks, another profiler, or
 * callgrind. Only taken ones: conditional branches that were taken, jumps, calls, returns.
 * Fall-throughs follow from them.
 */
struct mp_edge_count {
	uint64_t from; /* link-time address of the instruction that transfers */
	uint64_t to;   /* link-time address of its target */
	uint64_t count;
	uint64_t mispredicted; /* part of @count; 0 if unknown */
};

/* How many samples showed by their registers each way of a conditional branch. */
struct mp_way_count {
	uint64_t vaddr; /* link-time address of the branch, of the original */
	uint64_t taken;
	uint64_t fell; /* not taken */
};

#endif
