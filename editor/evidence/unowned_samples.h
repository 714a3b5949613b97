// SPDX-License-Identifier: Apache-2.0
/*
 * unowned_samples - samples in code that belongs to no function: assembly without unwind
 * information and without a sized symbol. This code does not move; the report says where it is.
 */
#ifndef ME_UNOWNED_SAMPLES_H
#define ME_UNOWNED_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/profile.h"

/* The report's reason why this code stays. */
#define ME_WHY_UNOWNED "belongs to no function: no unwind information, no symbol with a size"

/* A stretch between two functions, or between symbols there. */
struct me_unowned_samples {
	uint64_t vaddr, size, samples;
	char *near;	 /* the nearest symbol at or before it in its section; NULL: none */
	uint64_t offset; /* of @vaddr from that symbol */
};

struct me_unowned_samples_list {
	struct me_unowned_samples *list; /* most samples first */
	uint32_t nr;
	uint64_t samples; /* sum over @list */
};

/*
 * me_unowned_samples_find - finds the stretches of those @counts (ascending vaddr) that lie in no
 * function.
 * Return: 0, -ENOMEM. Ownership: me_unowned_samples_fini(@out).
 */
int me_unowned_samples_find(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
			    struct me_unowned_samples_list *out);
void me_unowned_samples_fini(struct me_unowned_samples_list *list);

#endif
