// SPDX-License-Identifier: Apache-2.0
/*
 * call_sites - the instructions that call or tail-call a function, and how often each ran. Called by
 * daemon/calls for each module of a program.
 */
#ifndef MP_CALL_SITES_H
#define MP_CALL_SITES_H

#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

enum mp_call_kind {
	MP_CALL_DIRECT,
	MP_CALL_INDIRECT,
	MP_CALL_TAIL,	       /* a jump to another function */
	MP_CALL_INDIRECT_TAIL, /* an indirect jump out of the function */
};

struct mp_call_site {
	uint64_t vaddr; /* the instruction */
	uint64_t next;	/* behind it: where a call returns to */
	uint64_t target; /* of DIRECT and TAIL; of others: the address of their pointer; 0: not known */
	uint32_t block, callee; /* @callee: index of a function, MP_NONE: none of this file */
	enum mp_call_kind kind;
};

struct mp_call_sites {
	struct mp_call_site *sites; /* ascending vaddr */
	uint32_t nr, max;
};

/*
 * mp_call_sites_find - the sites of all functions, without the jumps of a PLT, which belong to its
 * callers. @cfg has blocks. Return: 0, -ENOMEM. Ownership: free(@out->sites).
 */
int mp_call_sites_find(const struct mp_cfg *cfg, struct mp_call_sites *out);

/* Return: how often the site ran, as @counts say. */
double mp_call_site_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
			  const struct mp_call_site *site);
/* Return: how often function @f was entered: its entry's count without what loops bring back. */
double mp_call_entries(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f);
/* Return: instructions that each call of function @f runs, up to the first branch. */
uint32_t mp_call_first_insns(const struct mp_cfg *cfg, uint32_t f);

#endif
