// SPDX-License-Identifier: Apache-2.0
/*
 * stubs - puts stubs into a plan: those on all ways to a block before it, those from one block to
 * another where control goes from the one to the other, without a jump where it can be.
 */
#ifndef ME_STUBS_H
#define ME_STUBS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"

/* A stub on its way into the plan. */
struct me_stub_to {
	uint32_t block; /* it leads to */
	struct me_stub what;
};

struct me_stubs {
	struct me_stub_to *list;
	uint32_t nr, room;
};

/* Return: true, or false: out of memory. Ownership: me_stubs_fini(@stubs). */
bool me_stubs_add(struct me_stubs *stubs, struct me_stub_to stub);
void me_stubs_fini(struct me_stubs *stubs);
/*
 * me_stubs_put - into @plan, which gets copies of all blocks of the functions with @movable that it
 * lacks, and whose clones are taken out: what one would do its block's copy does for it. @stubs is
 * sorted. @nr_inline: how many control falls through; the others cost a jump more.
 * Return: 0, -ENOMEM: @plan is worth nothing.
 */
int me_stubs_put(const struct mp_cfg *cfg, const uint8_t *movable, struct me_stubs *stubs,
		 struct me_plan *plan, uint32_t *nr_inline);

#endif
