// SPDX-License-Identifier: Apache-2.0
/*
 * outside - samples in code that belongs to no function: assembly without unwind information
 * and without a sized symbol. This code does not move; the report says where it is.
 */
#ifndef ME_OUTSIDE_H
#define ME_OUTSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/profile.h"

/* The report's reason why this code stays. */
#define ME_WHY_OUTSIDE "belongs to no function: no unwind information, no symbol with a size"

/* A stretch between two functions, or between symbols there. */
struct me_outside {
	uint64_t vaddr, size, samples;
	char *near;	 /* the nearest symbol at or before it in its section; NULL: none */
	uint64_t offset; /* of @vaddr from that symbol */
};

struct me_outside_list {
	struct me_outside *list; /* most samples first */
	uint32_t nr;
	uint64_t samples; /* sum over @list */
};

/*
 * me_outside_find - finds the stretches of those @counts (ascending vaddr) that lie in no
 * function.
 * Return: 0, -ENOMEM. Ownership: me_outside_fini(@out).
 */
int me_outside_find(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		    struct me_outside_list *out);
void me_outside_fini(struct me_outside_list *list);

#endif
