// SPDX-License-Identifier: Apache-2.0
/* label - decides per function; pointer reports the places that hold labels. */
#include "editor/evidence/label.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Does code in the range of the function's entry jump to labels? Only labels of that
 * range change.
 */
static bool jumps_in_main(const struct mp_cfg *cfg, const struct mp_func *func)
{
	const struct mp_range *range = &cfg->ranges[func->first_range];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (block->vaddr - range->start < range->size &&
		    (block->term == MP_TERM_UNRESOLVED || block->term == MP_TERM_TABLE))
			return true;
	}
	return false;
}

int me_labels_init(const struct mp_cfg *cfg, struct me_labels *labels)
{
	*labels = (struct me_labels){cfg, calloc(cfg->nr_funcs + 1, 1)};
	if (!labels->may_change)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];

		labels->may_change[f] = func->problem == MP_PROBLEM_NONE &&
					(func->flags & (MP_FUNC_LABELS | MP_FUNC_LABEL_SUMS |
							MP_FUNC_LABEL_USES)) == MP_FUNC_LABELS &&
					jumps_in_main(cfg, func);
	}
	return 0;
}

void me_labels_fini(struct me_labels *labels)
{
	free(labels->may_change);
	labels->may_change = NULL;
}

bool me_labels_may_change(const struct me_labels *labels, uint64_t vaddr)
{
	const struct mp_cfg *cfg = labels->cfg;
	uint32_t func = mp_cfg_func_at(cfg, vaddr);
	const struct mp_range *range;

	if (func == MP_NONE || !labels->may_change[func] || cfg->funcs[func].vaddr == vaddr)
		return false;
	range = &cfg->ranges[cfg->funcs[func].first_range];
	return vaddr - range->start < range->size;
}

void me_labels_forbid(struct me_labels *labels, uint64_t vaddr)
{
	uint32_t func = mp_cfg_func_at(labels->cfg, vaddr);

	if (func != MP_NONE)
		labels->may_change[func] = 0;
}

void me_labels_forbid_range(struct me_labels *labels, uint64_t first, uint64_t last)
{
	const struct mp_cfg *cfg = labels->cfg;

	for (uint32_t r = 0; r < cfg->nr_ranges; r++)
		if (cfg->ranges[r].start <= last &&
		    first < cfg->ranges[r].start + cfg->ranges[r].size)
			labels->may_change[cfg->ranges[r].func] = 0;
}
