// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_adjust - finds the functions that adjustments name, has the plan adjusted, and notes in
 * the report what became of each. Called by optimize_read, optimize_plan and optimize_write.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/layout/adjust_text.h"
#include "editor/optimize/optimize_private.h"
#include "libprof/base/grow.h"

/* A function whose wishes contradict each other. */
static int contradiction(const struct me_job *job, uint32_t func, const struct me_adjust *wish,
			 struct mp_err *err)
{
	const struct mp_func *f = &job->cfg->funcs[func];
	struct me_adjustment alone = {0};
	char text[ME_ADJUST_TEXT_MAX];

	if (me_adjustment_add(&alone, wish->kind, wish->bytes))
		return mp_err_set(err, EINVAL, "an adjustment of 0x%" PRIx64 " is not valid",
				  wish->vaddr);
	return mp_err_set(err, ENOTUNIQ,
			  "--adjust: '%s' contradicts another adjustment of 0x%" PRIx64 " %s",
			  me_adjust_format(&alone, wish->kind, text), f->vaddr, f->name);
}

static int add(struct me_job *job, uint32_t func, const struct me_adjust *wish, struct mp_err *err)
{
	return me_adjustment_add(&job->adjustments[func], wish->kind, wish->bytes)
		       ? contradiction(job, func, wish, err)
		       : 0;
}

static int note_unknown(struct me_optimize_report *r, const char *name)
{
	if (mp_resize(r->adjust_unknown, r->nr_adjust_unknown + 1))
		return -ENOMEM;
	r->adjust_unknown[r->nr_adjust_unknown] = strdup(name);
	return r->adjust_unknown[r->nr_adjust_unknown++] ? 0 : -ENOMEM;
}

/* Adds the wish that one word names to each function that the word names. */
static int add_word(struct me_job *job, size_t i, unsigned char *chosen, struct mp_err *err)
{
	bool from_file;
	const char *text = me_words_text(&job->options->adjust_words, i, &from_file);
	struct me_adjust wish;
	size_t name_len;
	char *name;
	int rc = me_adjust_parse(text, &name_len, &wish, err);

	if (rc)
		return rc;
	name = strndup(text, name_len);
	memset(chosen, 0, job->cfg->nr_funcs);
	if (!name)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	else if (me_select_word(job->cfg, name, chosen))
		for (uint32_t f = 0; f < job->cfg->nr_funcs && !rc; f++)
			rc = chosen[f] ? add(job, f, &wish, err) : 0;
	else if (!from_file)
		rc = mp_err_set(err, ENOENT, "there is no function '%s'", name);
	else if (note_unknown(job->report, name))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	free(name);
	return rc;
}

static int add_by_address(struct me_job *job, const struct me_adjust *wish, struct mp_err *err)
{
	uint32_t f = mp_cfg_func_at(job->cfg, wish->vaddr);

	return f != MP_NONE
		       ? add(job, f, wish, err)
		       : mp_err_set(err, ENOENT, "there is no function at 0x%" PRIx64, wish->vaddr);
}

/* Layout must not see functions that stay. */
static void leave_out(struct me_job *job)
{
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!me_adjustment_has(&job->adjustments[f], ME_ADJUST_STAY) || !job->movable[f])
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "left out by --adjust";
	}
}

int me_job_read_adjustments(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	unsigned char *chosen;
	int rc = 0;

	if (!o->adjust_words.nr && !o->nr_adjusts && !o->audited_db)
		return 0;
	if (me_counting_any(&o->counting))
		return mp_err_set(err, EINVAL, "adjustments do not go with counters");
	job->adjustments = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*job->adjustments));
	chosen = malloc((size_t)job->cfg->nr_funcs + 1);
	if (!job->adjustments || !chosen)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < o->adjust_words.nr && !rc; i++)
		rc = add_word(job, i, chosen, err);
	for (uint32_t i = 0; i < o->nr_adjusts && !rc; i++)
		rc = add_by_address(job, &o->adjusts[i], err);
	if (!rc && o->audited_db)
		rc = me_job_follow_verdicts(job, err);
	if (!rc)
		leave_out(job);
	free(chosen);
	return rc;
}

int me_job_adjust_plan(struct me_job *job, struct mp_err *err)
{
	if (!job->adjustments)
		return 0;
	return me_adjust_plan(job->cfg, job->counts.block ? &job->counts : NULL, job->adjustments,
			      &job->plan, &job->added, err);
}

/* The address of the copy of @block, or of the stub before it; 0: not copied. */
static uint64_t place_of(const uint32_t *target, const struct me_placement *placement,
			 uint32_t block)
{
	return block != MP_NONE && target[block] != MP_NONE
		       ? placement->copies[target[block]].new_vaddr
		       : 0;
}

static int note_adjusted(struct me_job *job, uint32_t func, const struct me_placement *placement)
{
	const struct mp_func *f = &job->cfg->funcs[func];
	uint32_t entry = mp_cfg_block_starting(job->cfg, f->vaddr);
	struct me_adjusted *out = &job->report->adjusted[job->report->nr_adjusted];

	*out = (struct me_adjusted){
		.name = strdup(f->name),
		.vaddr = f->vaddr,
		.how = job->adjustments[func],
		.new_vaddr = place_of(placement->target_from_outside, placement, entry),
	};
	if (!out->name)
		return -ENOMEM;
	job->report->nr_adjusted++;
	if (out->new_vaddr && out->how.loop != MP_NONE)
		out->loop_vaddr = place_of(placement->target_from_inside, placement, out->how.loop);
	if (me_adjustment_has(&out->how, ME_ADJUST_STAY))
		out->how.done = out->how.kinds;
	else if (!out->new_vaddr)
		out->why_not = job->movable[func] ? "too little evidence that it runs"
						  : job->eligible.detail[func];
	return 0;
}

int me_job_note_adjusted(struct me_job *job, const struct me_placement *placement,
			 struct mp_err *err)
{
	uint32_t nr = 0;
	int rc = 0;

	if (!job->adjustments)
		return 0;
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++)
		nr += job->adjustments[f].kinds != 0;
	job->report->adjusted = calloc((size_t)nr + 1, sizeof(*job->report->adjusted));
	if (!job->report->adjusted)
		rc = -ENOMEM;
	for (uint32_t f = 0; f < job->cfg->nr_funcs && !rc; f++)
		if (job->adjustments[f].kinds)
			rc = note_adjusted(job, f, placement);
	me_job_note_decided(job, placement);
	return rc ? mp_err_code(err, -rc) : 0;
}
