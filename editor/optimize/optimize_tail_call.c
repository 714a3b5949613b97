// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_tail_call - lets copies of functions' beginnings stand in place of jumps to these functions. The layout is
 * decided before, so it does not depend on this. Called by optimize.c, before calls are replaced.
 *
 * layout_beginning decides which jumps; this file, which functions take part.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/layout/layout_beginning.h"
#include "editor/optimize/optimize_private.h"

/* An exception table would have to be repeated for each part of the function's copy. */
static bool has_exception_table(const struct mp_cfg *cfg, const struct mp_func *func)
{
	for (uint32_t r = func->first_range; r < func->first_range + func->nr_ranges; r++)
		if (cfg->ranges[r].fde != MP_NONE && cfg->elf->fdes[cfg->ranges[r].fde].lsda)
			return true;
	return false;
}

static uint8_t *find_allowed(const struct mp_cfg *cfg)
{
	uint8_t *allowed = calloc((size_t)cfg->nr_funcs + 1, 1);

	for (uint32_t f = 0; allowed && f < cfg->nr_funcs; f++)
		allowed[f] = !(cfg->funcs[f].flags & MP_FUNC_BARE) &&
			     !has_exception_table(cfg, &cfg->funcs[f]);
	return allowed;
}

int me_job_copy_beginnings(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	uint8_t *allowed;
	int ret = -ENOMEM;

	/* A breakpoint on a function would not stop in such a copy of its beginning. */
	if (!o->layout.tail_calls || me_counting_any(&o->counting) || job->added.nr_stubs ||
	    me_job_has_debug(job) || (!job->counts.block && !o->stress_inline))
		return 0;
	allowed = find_allowed(job->cfg);
	if (allowed)
		ret = o->stress_inline
			      ? me_beginnings_add_random(job->cfg, allowed, o->stress_inline_seed,
							 &job->plan)
			      : me_beginnings_add(job->cfg, &job->counts, allowed, &job->plan);
	free(allowed);
	return ret ? mp_err_set(err, -ret, "out of memory") : 0;
}
