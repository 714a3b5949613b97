// SPDX-License-Identifier: Apache-2.0
/*
 * verify_parallel - runs a check of many independent items on several threads. Called by the
 * parts of verify.
 *
 * Each call sees a struct vf with a result and a message of its own. All share the marks: a call
 * writes only entries of its own items. Marks of pointers use vf_bits_share(). If items of some
 * functions are refused, all others are checked, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_parallel.h"
#include "libprof/base/parallel.h"

struct job {
	const struct vf *vf;
	int (*run)(const struct vf *vf, void *ctx, uint32_t first, uint32_t end);
	void *ctx;
	struct vf_result results[MP_PARALLEL_MAX]; /* one per worker */
	struct vf_refusals refusals;		   /* ascending order */
	pthread_mutex_t lock;			   /* of @refusals */
};

/* Refused functions of one call: with more, a call ends. */
#define REFUSALS_PER_CALL 4

/* The first ones stay, so that the result does not depend on the speed of threads. */
static void add_refusals(struct job *job, uint32_t first, const struct vf_refusals *more)
{
	struct vf_refusals *r = &job->refusals;

	pthread_mutex_lock(&job->lock);
	for (uint32_t i = 0; i < more->nr; i++) {
		uint64_t order = (uint64_t)first << 8 | i;
		uint32_t k = r->nr < r->max ? r->nr++ : r->nr;

		for (; k && r->list[k - 1].order > order; k--)
			if (k < r->max)
				r->list[k] = r->list[k - 1];
		if (k == r->max)
			break;
		r->list[k].order = order;
		r->list[k].what = more->list[i].what;
	}
	pthread_mutex_unlock(&job->lock);
}

static void result_add(struct vf_result *sum, const struct vf_result *more)
{
	struct me_verify_report *to = &sum->report;
	const struct me_verify_report *from = &more->report;

	to->nr_pieces += from->nr_pieces;
	to->nr_insns += from->nr_insns;
	to->nr_patches += from->nr_patches;
	to->nr_retargeted += from->nr_retargeted;
	to->nr_table_entries += from->nr_table_entries;
	to->nr_pointers += from->nr_pointers;
	to->nr_unwind_rows += from->nr_unwind_rows;
	to->nr_landing_pads += from->nr_landing_pads;
	to->nr_via_slot += from->nr_via_slot;
	to->nr_inlined += from->nr_inlined;
	to->nr_left_out += from->nr_left_out;
	sum->nr_eh_refs += more->nr_eh_refs;
	sum->nr_abs_changed += more->nr_abs_changed;
}

/* result_add() must add up every count. */
_Static_assert(offsetof(struct me_verify_report, unproved) == 11 * sizeof(uint64_t) &&
		       offsetof(struct vf_result, table) ==
			       sizeof(struct me_verify_report) + 2 * sizeof(uint64_t),
	       "result_add() lacks one");

static int run_some(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		    struct mp_err *err)
{
	struct job *job = ctx;
	struct vf_refusals found = {.max = REFUSALS_PER_CALL};
	struct vf own = *job->vf;
	int ret;

	own.err = err;
	own.refusals = &found;
	own.result = &job->results[worker];
	own.result->table = job->vf->result->table;
	own.worker = worker;
	ret = vf_go_on(&own, job->run(&own, job->ctx, first, end));
	if (found.nr)
		add_refusals(job, first, &found);
	return ret == -EBADMSG && found.blamed ? 0 : ret;
}

/* Return: -EBADMSG, with the first refusal's message. */
static int take_refusals(const struct vf *vf, const struct vf_refusals *found)
{
	mp_err_set(vf->err, EBADMSG, "%s", found->list[0].what.why);
	for (uint32_t i = 0; i < found->nr && vf->refusals->nr < vf->refusals->max; i++)
		vf->refusals->list[vf->refusals->nr++] = found->list[i];
	vf->refusals->blamed = found->list[0].what.vaddr;
	return -EBADMSG;
}

int vf_parallel(const struct vf *vf, uint32_t nr_items, uint32_t grain,
		int (*run)(const struct vf *vf, void *ctx, uint32_t first, uint32_t end), void *ctx)
{
	struct job job = {.vf = vf,
			  .run = run,
			  .ctx = ctx,
			  .refusals = {.max = ME_MAX_REFUSED},
			  .lock = PTHREAD_MUTEX_INITIALIZER};
	const struct mp_parallel work = {
		.nr_items = nr_items, .grain = grain, .run = run_some, .ctx = &job};
	int ret = mp_parallel_for(vf->nr_threads, &work, vf->err);

	for (unsigned int i = 0; i < MP_PARALLEL_MAX; i++)
		result_add(vf->result, &job.results[i]);
	return !ret && job.refusals.nr ? take_refusals(vf, &job.refusals) : ret;
}

/* Least number of bytes of text between two cuts. */
#define VF_CUT_BYTES (1U << 16)

int vf_find_cuts(struct vf *vf)
{
	uint64_t reached = vf->old.text_start, last = vf->old.text_start;

	vf->old.cuts = malloc(((vf->old.text_end - vf->old.text_start) / VF_CUT_BYTES + 1) *
			      sizeof(*vf->old.cuts));
	if (!vf->old.cuts)
		return -ENOMEM;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[i];
		uint64_t end = fde->start + fde->size;

		if (vf_is_text(vf, fde->start) && fde->start >= reached &&
		    fde->start - last >= VF_CUT_BYTES &&
		    (fde->start - vf->old.text_start) % 64 == 0)
			last = vf->old.cuts[vf->old.nr_cuts++] = fde->start;
		reached = end > reached ? end : reached;
	}
	return 0;
}

int vf_go_on(const struct vf *vf, int ret)
{
	struct vf_refusals *r = vf->refusals;
	const struct vf_fde *fde;
	uint64_t start;

	if (ret != -EBADMSG || !r->blamed)
		return ret;
	fde = vf_eh_find(&vf->old.eh, r->blamed);
	start = fde ? fde->start : r->blamed;
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->list[i].what.vaddr == start)
			return 0;
	if (r->nr == r->max)
		return ret;
	r->list[r->nr].order = r->nr;
	r->list[r->nr].what.vaddr = start;
	snprintf(r->list[r->nr].what.why, sizeof(r->list[r->nr].what.why), "%.*s",
		 (int)sizeof(r->list[r->nr].what.why) - 1, vf->err->msg);
	r->nr++;
	return 0;
}
