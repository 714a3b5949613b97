// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_rewrite - chooses the rewrites of this output, and gives what names blocks their new indexes. Called by
 * optimize.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/optimize/optimize_private.h"
#include "editor/rewrite/rewrite.h"

/* The counts that are printed beside places. Parts run as often as their block did. */
static int cut_counts(struct me_job *job, const uint32_t *first, uint32_t nr_old,
		      uint32_t nr_old_edges)
{
	const struct mp_cfg *cfg = job->cfg;
	struct mp_counts *counts = &job->counts;
	double *block = calloc((size_t)cfg->nr_blocks + 1, sizeof(*block));
	uint64_t *samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(*samples));
	double *edge = realloc(counts->edge, ((size_t)cfg->nr_edges + 1) * sizeof(*edge));

	if (edge)
		counts->edge = edge;
	if (!block || !samples || !edge) {
		free(block);
		free(samples);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < nr_old; b++) {
		samples[first[b]] = counts->samples[b];
		for (uint32_t n = first[b]; n < first[b + 1]; n++)
			block[n] = counts->block[b];
	}
	for (uint32_t e = nr_old_edges; e < cfg->nr_edges; e++)
		edge[e] = block[cfg->edges[e].from];
	free(counts->block);
	free(counts->samples);
	counts->block = block;
	counts->samples = samples;
	return 0;
}

/* Gives the stubs, adjustments and counts of the job the new indexes of their blocks. @nr_blocks, @nr_edges: before the cut. */
static int follow_cut(struct me_job *job, const uint32_t *first, uint32_t nr_blocks,
		      uint32_t nr_edges)
{
	for (uint32_t s = 0; s < job->added.nr_stubs; s++)
		if (job->added.stubs[s].arrivals == ME_STUB_EDGE)
			job->added.stubs[s].from = first[job->added.stubs[s].from + 1] - 1;
	for (uint32_t f = 0; job->adjustments && f < job->cfg->nr_funcs; f++)
		if (job->adjustments[f].loop != MP_NONE)
			job->adjustments[f].loop = first[job->adjustments[f].loop];
	return job->options->print && job->counts.block
		       ? cut_counts(job, first, nr_blocks, nr_edges)
		       : 0;
}

int me_job_rewrite(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	bool counts = me_counting_any(&o->counting);
	struct me_rewriting r = {
		.cfg = job->cfg,
		.plan = &job->plan,
		.counts = job->counts.block,
		/* An output that counts many things, or numbers paths, keeps all calls. */
		.slots = o->layout.slots && !o->layout.original && (!counts || o->counting.meter),
		.inlines = o->layout.inline_leaves && !counts && !job->added.nr_stubs,
		.described = job->debug || mp_elf_section(job->elf, ".debug_info") ||
			     mp_elf_section(job->elf, ".zdebug_info"),
		.arranges = job->counts.block || o->stress_inline || job->given.arranges,
		.given = o->plan,
		.calls = job->given.calls,
		.nr_calls = job->given.nr_calls,
		.stress = o->stress_inline ? &o->stress_inline_seed : NULL,
	};
	uint32_t *first, nr_blocks = job->cfg->nr_blocks, nr_edges = job->cfg->nr_edges;
	struct mp_err why;
	int rc;

	if (!r.slots && !r.inlines)
		return 0;
	rc = me_rewrite_plan(&r, &first, &why);
	if (rc == -EBADMSG)
		mp_err_set(err, EBADMSG, "%s: %s", o->plan, why.msg);
	else if (rc)
		mp_err_set(err, -rc, "%s", why.msg);
	if (!rc && first && follow_cut(job, first, nr_blocks, nr_edges))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	free(first);
	if (!o->save_plan) {
		free(r.replaced);
		return rc;
	}
	job->replaced = r.replaced;
	job->nr_replaced = r.nr_replaced;
	return rc;
}
