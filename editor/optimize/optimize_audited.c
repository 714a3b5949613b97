// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_audited - takes over what audits inside the running program decided: a function whose
 * original order won keeps this order. Called by optimize_adjust.
 *
 * The newest decided audit of each function counts. Its evidence goes into the report. The user's
 * --adjust=FUNCTION:stay is stronger.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/optimize/optimize_private.h"
#include "libprof/store/audits/store_audits.h"

static struct me_decided *find(struct me_optimize_report *r, uint64_t vaddr)
{
	for (uint32_t i = 0; i < r->nr_decided; i++)
		if (r->decided[i].vaddr == vaddr)
			return &r->decided[i];
	return NULL;
}

/* Does this audit say more about the function than what is known? Audits come newest first. */
static bool says_more(const struct me_decided *known, const struct mp_audit_effect *effect)
{
	if (!known->machine[0])
		return true;
	if (known->verdict == MP_AUDIT_VERDICT_NONE)
		return effect->verdict != MP_AUDIT_VERDICT_NONE;
	/* A verdict that was only taken over has its evidence in an older audit. */
	return known->taken_over && effect->verdict == known->verdict && !effect->earlier;
}

static void note(struct me_decided *d, const struct mp_stored_audit *audit,
		 const struct mp_audit_effect *effect)
{
	d->verdict = (uint8_t)effect->verdict;
	d->taken_over = effect->earlier;
	d->pairs = effect->pairs;
	d->faster_by = effect->pairs ? expm1(effect->estimate) : NAN;
	d->lowest = isfinite(effect->lowest) ? expm1(effect->lowest) : NAN;
	d->highest = isfinite(effect->highest) ? expm1(effect->highest) : NAN;
	d->last_s = audit->last_s;
	memcpy(d->machine, audit->machine, sizeof(d->machine));
	if (!d->machine[0])
		strcpy(d->machine, "?");
}

static int add(struct me_job *job, const struct mp_stored_audit *audit)
{
	struct me_optimize_report *r = job->report;
	struct me_decided *grown = reallocarray(
		r->decided, (size_t)r->nr_decided + audit->nr_functions + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->decided = grown;
	for (uint32_t i = 0; i < audit->nr_functions; i++) {
		const struct mp_stored_effect *e = &audit->effects[i];
		uint32_t f = e->vaddr ? mp_cfg_func_at(job->cfg, e->vaddr) : MP_NONE;
		struct me_decided *d = find(r, e->vaddr);

		if (f == MP_NONE || job->cfg->funcs[f].vaddr != e->vaddr)
			continue;
		if (!d) {
			char *name = strdup(job->cfg->funcs[f].name);

			if (!name)
				return -ENOMEM;
			d = &r->decided[r->nr_decided++];
			*d = (struct me_decided){.name = name, .vaddr = e->vaddr};
		}
		if (says_more(d, &e->effect))
			note(d, audit, &e->effect);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct me_decided *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int read_audits(struct me_job *job, struct mp_err *err)
{
	struct mp_store *store;
	struct mp_stored_audit *audits = NULL;
	size_t nr = 0;
	int rc = mp_store_open(job->options->audited_db, MP_STORE_READ, &store, err);

	if (rc)
		return rc;
	rc = mp_store_list_audits(store, &audits, &nr, err);
	for (size_t i = 0; i < nr && !rc; i++)
		if (mp_id_equal(&audits[i].original, &job->elf->id) && add(job, &audits[i]))
			rc = mp_err_set(err, ENOMEM, "out of memory");
	mp_store_free_audits(audits, nr);
	mp_store_close(store);
	if (!rc && !job->report->nr_decided)
		rc = mp_err_set(err, ENODATA, "%s: holds no audit of functions of %s",
				job->options->audited_db, job->options->input);
	if (!rc)
		qsort(job->report->decided, job->report->nr_decided, sizeof(*job->report->decided),
		      compare);
	return rc;
}

int me_job_follow_verdicts(struct me_job *job, struct mp_err *err)
{
	int rc = read_audits(job, err);

	for (uint32_t i = 0; i < job->report->nr_decided && !rc; i++) {
		const struct me_decided *d = &job->report->decided[i];
		uint32_t f = mp_cfg_func_at(job->cfg, d->vaddr);

		/* One function's two wishes differ only where the user wants it to stay. */
		if (d->verdict == MP_AUDIT_VERDICT_A &&
		    !me_adjustment_has(&job->adjustments[f], ME_ADJUST_STAY))
			me_adjustment_add(&job->adjustments[f], ME_ADJUST_ORIGINAL, 0);
	}
	return rc;
}

int me_job_weigh_decided(struct me_job *job, struct mp_err *err)
{
	const struct mp_profile *p = job->sampled ? job->sampled : job->profile;
	uint64_t all = p->nr_samples + p->nr_outside, *own;

	if (!job->report->nr_decided || !all)
		return 0;
	own = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*own));
	if (!own)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		own[job->cfg->blocks[b].func] += p->block_samples[b];
	for (uint32_t i = 0; i < job->report->nr_decided; i++) {
		struct me_decided *d = &job->report->decided[i];

		d->share = (double)own[mp_cfg_func_at(job->cfg, d->vaddr)] / (double)all;
	}
	free(own);
	return 0;
}

void me_job_note_decided(struct me_job *job, const struct me_placement *placement)
{
	for (uint32_t i = 0; i < job->report->nr_decided; i++) {
		struct me_decided *d = &job->report->decided[i];
		uint32_t f = mp_cfg_func_at(job->cfg, d->vaddr);
		uint32_t entry = mp_cfg_block_starting(job->cfg, d->vaddr);
		bool copied = entry != MP_NONE && placement->target_from_outside[entry] != MP_NONE;
		bool original = job->adjustments[f].done >> ME_ADJUST_ORIGINAL & 1;

		/* A function that is not copied has the original's order as well. */
		d->order = !copied || original ? MP_AUDIT_VERDICT_A : MP_AUDIT_VERDICT_B;
		d->copied = copied;
	}
}
