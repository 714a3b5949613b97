// SPDX-License-Identifier: Apache-2.0
/*
 * stubs - puts stubs into a plan: a stub on all paths to a block goes before that block; a stub
 * on one edge, between its ends, without a jump if possible. Called by instrument, number and
 * optimize.
 */
#ifndef ME_STUBS_H
#define ME_STUBS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/cfg/cfg.h"

/* A stub, and the block that it leads to. */
struct me_stub_to {
	uint32_t block; /* target */
	struct me_stub what;
};

struct me_stubs {
	struct me_stub_to *list;
	uint32_t nr, cap;
	bool others_stay; /* functions that are not movable keep their clones and their runs */
};

/* Add a stub to the list. Return: false: out of memory. Ownership: me_stubs_fini(@stubs). */
bool me_stubs_add(struct me_stubs *stubs, struct me_stub_to stub);
void me_stubs_fini(struct me_stubs *stubs);
/*
 * me_stubs_put - sorts @stubs, which are of functions with @movable, and puts them into @plan and @added. Adds copies
 * of all blocks of these functions that @plan lacks, and removes all clones: the blocks' copies replace them. *@nr_inline: number of stubs that control falls through; others cost a jump more.
 * Return: 0, -ENOMEM: @plan is not usable.
 */
int me_stubs_put(const struct mp_cfg *cfg, const uint8_t *movable, struct me_stubs *stubs,
		 struct me_plan *plan, struct me_instrumentation *added, uint32_t *nr_inline);

#endif
