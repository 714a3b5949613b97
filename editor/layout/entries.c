// SPDX-License-Identifier: Apache-2.0
/*
 * entries - counts arrivals at old addresses, and compares their cost with what the copies save.
 *
 * Uses counts and callers. pointer decides which pointers may change, patch which tables.
 * Called by optimize between layout and prediction.
 */
#include "editor/layout/entries.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "editor/layout/predict.h"
#include "editor/evidence/patch_fit.h"

/* Rounding error: a smaller share of a block's count is not an arrival. */
#define ROUNDING 1e-6

struct walk {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const struct mp_entry_samples *samples;
	const uint8_t *redirected, *labels;
	uint8_t *kept;	/* per table: it will lead to old code */
	double *called; /* per function: direct calls, and jumps from other functions */
	double *direct; /* per block: arrivals by edges, and by calls into a function */
	double *arrivals;
};

static bool func_runs(const struct walk *w, uint32_t f)
{
	const struct mp_func *func = &w->cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (w->counts->block[b] > 0)
			return true;
	return false;
}

/* Predict which tables patch will leave as they are. */
static void tables_find_kept(const struct walk *w)
{
	for (uint32_t t = 0; t < w->cfg->nr_tables; t++) {
		const struct mp_table *table = &w->cfg->tables[t];

		if (table->func == MP_NONE || !func_runs(w, table->func))
			continue;
		if (table->kind == MP_TABLE_ABS64 && w->labels && w->labels[table->func])
			continue;
		w->kept[t] = !me_patch_leads_table(w->cfg, table);
	}
}

static void edges_add(const struct walk *w)
{
	for (uint32_t b = 0; b < w->cfg->nr_blocks; b++) {
		const struct mp_block *block = &w->cfg->blocks[b];
		bool kept = block->term == MP_TERM_TABLE && block->table != MP_NONE &&
			    w->kept[block->table];

		if (!(w->counts->block[b] > 0))
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			w->direct[w->cfg->edges[e].to] += w->counts->edge[e];
			if (kept && w->cfg->edges[e].kind == MP_EDGE_TABLE)
				w->arrivals[block->func] += w->counts->edge[e];
		}
	}
}

static void calls_add(const struct walk *w)
{
	for (uint32_t i = 0; i < w->cfg->nr_calls; i++) {
		const struct mp_call *call = &w->cfg->calls[i];
		const struct mp_block *block = &w->cfg->blocks[call->block];
		double count = w->counts->block[call->block];
		uint64_t target;
		uint32_t to;

		if (!(count > 0))
			continue;
		/* One way of a conditional branch leaves the function; the other way is an edge. */
		if (call->tail && block->term == MP_TERM_COND)
			for (uint32_t e = block->first_edge;
			     e < block->first_edge + block->nr_edges; e++)
				count -= w->counts->edge[e];
		if (!(count > 0))
			continue;
		target = mp_call_target(w->cfg, call);
		if (call->callee != MP_NONE && target == w->cfg->funcs[call->callee].vaddr)
			w->called[call->callee] += count;
		else if ((to = mp_cfg_block_starting(w->cfg, target)) != MP_NONE)
			w->direct[to] += count;
	}
}

/* May control come to @block by an address that keeps its old value? */
static bool is_known_elsewhere(const struct walk *w, const struct mp_block *block)
{
	const struct mp_func *func = &w->cfg->funcs[block->func];

	if (block->flags & MP_BLOCK_ENTRY)
		return func->flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED | MP_FUNC_POINTED) &&
		       !w->redirected[block->func];
	/* The unwinder is led to the copy of a landing pad. */
	return !(w->labels && w->labels[block->func]) &&
	       (block->flags & (MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_LANDING_PAD)) ==
		       MP_BLOCK_ADDRESS_TAKEN;
}

/*
 * At most how many of @entered entries of function @f came by its address, as its callers in samples show.
 * What direct calls do not explain of an entry's count may be the error of the counts; samples of direct
 * calls show that. The share is the mean of its distribution after these samples, with Jeffreys' prior:
 * half a sample each.
 */
static double most_arrivals(const struct walk *w, uint32_t f, double entered)
{
	const struct mp_entry_samples *s = w->samples;

	if (!s || !s->direct || w->counts->exact || !(s->direct[f] + s->other[f] > 0))
		return entered;
	return entered * (s->other[f] + 0.5) / (s->direct[f] + s->other[f] + 1);
}

static void arrivals_add(const struct walk *w)
{
	for (uint32_t b = 0; b < w->cfg->nr_blocks; b++) {
		const struct mp_block *block = &w->cfg->blocks[b];
		double count = w->counts->block[b], more = count - w->direct[b];

		if (block->flags & MP_BLOCK_ENTRY && block->func != MP_NONE)
			more = fmin(more - w->called[block->func],
				    most_arrivals(w, block->func, more));
		if (more > ROUNDING * count && block->func != MP_NONE &&
		    is_known_elsewhere(w, block))
			w->arrivals[block->func] += more;
	}
}

int me_entries_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const struct mp_entry_samples *samples, const uint8_t *redirected,
		     const uint8_t *labels, struct me_entries *out, struct mp_err *err)
{
	struct walk w = {.cfg = cfg,
			 .counts = counts,
			 .samples = samples,
			 .redirected = redirected,
			 .labels = labels};
	int rc = 0;

	out->arrivals = calloc((size_t)cfg->nr_funcs + 1, sizeof(*out->arrivals));
	out->dropped = calloc((size_t)cfg->nr_funcs + 1, 1);
	w.arrivals = out->arrivals;
	w.kept = calloc((size_t)cfg->nr_tables + 1, 1);
	w.called = calloc((size_t)cfg->nr_funcs + 1, sizeof(*w.called));
	w.direct = calloc((size_t)cfg->nr_blocks + 1, sizeof(*w.direct));
	if (out->arrivals && out->dropped && w.kept && w.called && w.direct) {
		tables_find_kept(&w);
		edges_add(&w);
		calls_add(&w);
		arrivals_add(&w);
	} else {
		me_entries_fini(out);
		rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	free(w.kept);
	free(w.called);
	free(w.direct);
	return rc;
}

void me_entries_fini(struct me_entries *entries)
{
	free(entries->arrivals);
	free(entries->dropped);
	*entries = (struct me_entries){0};
}

/* Share of a saving that remains if its counts are one standard error too high. */
static double remaining_share(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint64_t nr_samples = 0;

	if (counts->exact)
		return 1;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		nr_samples += counts->samples[b];
	return nr_samples ? 1 - 1 / sqrt((double)nr_samples) : 0;
}

static void plan_remove(const struct mp_cfg *cfg, const uint8_t *dropped, struct me_plan *plan)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (!dropped[cfg->blocks[plan->blocks[i].block].func])
			plan->blocks[nr++] = plan->blocks[i];
	plan->nr_blocks = nr;
}

/*
 * The cost of an arrival is certain, the saving of an order is only predicted. Hence
 * the saving alone is reduced by its error; with few samples, the original stays.
 */
int me_entries_drop_costly(const struct mp_cfg *cfg, const struct mp_counts *counts,
			   struct me_entries *entries, struct me_plan *plan, struct mp_err *err)
{
	double *saved = calloc((size_t)cfg->nr_funcs + 1, sizeof(*saved));
	bool any = false;
	int rc = saved ? me_layout_savings(cfg, counts, plan, saved) : -ENOMEM;

	for (uint32_t i = 0; i < plan->nr_blocks && !rc; i++) {
		uint32_t f = cfg->blocks[plan->blocks[i].block].func;

		if (entries->dropped[f] || !(entries->arrivals[f] > 0) ||
		    saved[f] * remaining_share(cfg, counts, f) > entries->arrivals[f])
			continue;
		entries->dropped[f] = 1;
		any = true;
	}
	if (any)
		plan_remove(cfg, entries->dropped, plan);
	free(saved);
	return rc ? mp_err_set(err, -rc, "layout: out of memory") : 0;
}
