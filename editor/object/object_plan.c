// SPDX-License-Identifier: Apache-2.0
/* object_plan - the program's plan by function and by name. Called by object and object_match. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object.h"
#include "libprof/base/search.h"

static int compare_names(const void *a, const void *b, void *cfg)
{
	const uint32_t *x = a, *y = b;
	const struct mp_func *funcs = ((const struct mp_cfg *)cfg)->funcs;
	int by_name = strcmp(funcs[*x].name, funcs[*y].name);

	return by_name ? by_name : (*x > *y) - (*x < *y);
}

static void sort_blocks(struct me_object_plan *plan)
{
	const struct mp_cfg *cfg = plan->cfg;
	const struct me_plan *made = plan->plan;

	for (uint32_t i = 0; i < made->nr_blocks; i++)
		plan->first[cfg->blocks[made->blocks[i].block].func + 1]++;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		plan->first[f + 1] += plan->first[f];
	/* Fill from the end, so that the starts move to where they belong. */
	for (uint32_t i = made->nr_blocks; i-- > 0;) {
		uint32_t f = cfg->blocks[made->blocks[i].block].func;

		plan->order[--plan->first[f + 1]] = i;
	}
	/* first[f + 1] is now where f begins. */
	memmove(plan->first, plan->first + 1, cfg->nr_funcs * sizeof(*plan->first));
	plan->first[cfg->nr_funcs] = made->nr_blocks;
}

int me_object_plan_init(struct me_object_plan *plan, const struct mp_cfg *cfg,
			const struct mp_counts *counts, const struct me_plan *made,
			struct mp_err *err)
{
	*plan = (struct me_object_plan){
		.cfg = cfg,
		.counts = counts,
		.plan = made,
		.by_name = calloc((size_t)cfg->nr_funcs + 1, sizeof(*plan->by_name)),
		.order = calloc((size_t)made->nr_blocks + 1, sizeof(*plan->order)),
		.first = calloc((size_t)cfg->nr_funcs + 2, sizeof(*plan->first)),
	};
	if (!plan->by_name || !plan->order || !plan->first)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (cfg->funcs[f].name && *cfg->funcs[f].name)
			plan->by_name[plan->nr_by_name++] = f;
	qsort_r(plan->by_name, plan->nr_by_name, sizeof(*plan->by_name), compare_names,
		(void *)cfg);
	sort_blocks(plan);
	return 0;
}

void me_object_plan_fini(struct me_object_plan *plan)
{
	free(plan->by_name);
	free(plan->order);
	free(plan->first);
}

uint32_t me_object_plan_named(const struct me_object_plan *plan, const char *name, uint32_t *first)
{
	uint32_t low = mp_search(i, 0, plan->nr_by_name,
				 strcmp(plan->cfg->funcs[plan->by_name[i]].name, name) < 0);

	*first = low;
	while (low < plan->nr_by_name && !strcmp(plan->cfg->funcs[plan->by_name[low]].name, name))
		low++;
	return low;
}
