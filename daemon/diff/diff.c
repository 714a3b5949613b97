// SPDX-License-Identifier: Apache-2.0
/*
 * diff - loads, compares and tests the samples of two sides; see diff.h. Decides what shares
 * refer to, and which rows name the same code.
 */
#include "daemon/diff/diff.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/diff/proportion.h"

#define LEVEL 0.05

/* ---- load ---------------------------------------------------------------------------------- */

static uint64_t sum(const struct mp_ip_count *counts, size_t nr)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += counts[i].count;
	return total;
}

/* Adds the samples of spans that lie only partly in @period. */
static int count_left_out(struct mp_store *store, int64_t module, const struct mp_span *period,
			  uint64_t *left_out, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr = 0;
	int r = mp_store_list_ip_count_spans(store, module, &spans, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		struct mp_ip_count *counts = NULL;
		size_t nr_counts = 0;

		if (spans[i].last_day < period->first_day ||
		    spans[i].first_day > period->last_day ||
		    (spans[i].first_day >= period->first_day &&
		     spans[i].last_day <= period->last_day))
			continue;
		r = mp_store_read_ip_count_span(store, module, &spans[i], &counts, &nr_counts, err);
		if (!r)
			*left_out += sum(counts, nr_counts);
		free(counts);
	}
	free(spans);
	return r;
}

int md_diff_load(struct md_diff_side *side, struct mp_store *store, const struct mp_span *period,
		 struct mp_err *err)
{
	int r = mp_store_begin(store, err);

	if (!r)
		r = mp_store_list_modules(store, 0, &side->modules, &side->nr, err);
	if (!r && !(side->more = calloc(side->nr + 1, sizeof(*side->more))))
		r = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < side->nr && !r; i++) {
		struct md_diff_module *more = &side->more[i];
		int64_t key = side->modules[i].key;

		r = mp_store_read_ip_count_span(store, key, period, &more->counts, &more->nr_counts,
						err);
		if (r)
			break;
		more->samples = sum(more->counts, more->nr_counts);
		side->total += more->samples;
		r = count_left_out(store, key, period, &side->left_out, err);
	}
	mp_store_rollback(store);
	return r;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int module_rows(struct md_diff *diff)
{
	int r = 0;

	for (size_t g = 0; g < diff->nr_groups && !r; g++) {
		const struct md_diff_group *group = &diff->groups[g];
		struct md_diff_row row = {.group = g,
					  .samples = {group->samples[0], group->samples[1]}};

		if (group->wanted)
			r = md_diff_add_row(diff, &row);
	}
	return r;
}

/* ---- compare ------------------------------------------------------------------------------- */

static int test_rows(struct md_diff *diff)
{
	const uint64_t *n = (uint64_t[2]){diff->sides[0].total, diff->sides[1].total};
	double *p = malloc((diff->nr_rows + 1) * sizeof(*p));
	double *adjusted = malloc((diff->nr_rows + 1) * sizeof(*adjusted));
	int r = p && adjusted ? 0 : -ENOMEM;

	for (size_t i = 0; i < diff->nr_rows && !r; i++) {
		struct md_diff_row *row = &diff->rows[i];

		for (int s = 0; s < 2; s++)
			row->share[s] = n[s] ? 100.0 * (double)row->samples[s] / (double)n[s] : 0;
		row->delta = row->share[1] - row->share[0];
		row->p = p[i] = md_proportion_p(row->samples[0], n[0], row->samples[1], n[1]);
	}
	if (!r)
		r = md_holm_adjust(p, diff->nr_rows, adjusted);
	for (size_t i = 0; i < diff->nr_rows && !r; i++)
		diff->rows[i].p_adjusted = adjusted[i];
	free(p);
	free(adjusted);
	return r;
}

bool md_diff_row_is_significant(const struct md_diff_row *row)
{
	return row->p_adjusted < LEVEL;
}

bool md_diff_row_is_possible(const struct md_diff_row *row)
{
	return row->p < LEVEL;
}

int md_diff_compare(struct md_diff *diff, struct mp_err *err)
{
	int r = md_diff_match(diff, err);

	if (r)
		return r;
	if (diff->by == MD_BY_MODULE)
		r = module_rows(diff) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	else
		r = md_diff_code_rows(diff, err);
	if (!r && test_rows(diff))
		r = mp_err_set(err, ENOMEM, "out of memory");
	return r;
}

void md_diff_fini(struct md_diff *diff)
{
	for (int s = 0; s < 2; s++) {
		struct md_diff_side *side = &diff->sides[s];

		for (size_t i = 0; side->more && i < side->nr; i++)
			free(side->more[i].counts);
		free(side->more);
		mp_store_free_modules(side->modules, side->nr);
	}
	for (size_t i = 0; i < diff->nr_rows; i++)
		free(diff->rows[i].function);
	free(diff->rows);
	free(diff->groups);
}
