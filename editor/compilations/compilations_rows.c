// SPDX-License-Identifier: Apache-2.0
/* compilations_rows - picks and orders what a report shows; see compilations_rows.h. */
#include "editor/compilations/compilations_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/refine/sample_db.h"

double me_compilations_seconds(const struct me_compilations *result, uint64_t samples)
{
	return result->nr_pairs ? (double)samples / (double)result->nr_pairs / ME_SAMPLE_DB_HZ : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct me_compilations_row *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return x->region < y->region ? -1 : x->region > y->region;
}

static bool is_shown(const struct me_compilations *result, const struct me_region_test *c,
		     double share)
{
	return c->tested ||
	       (c->work_differs && share >= ME_REGION_LEAST_SHARE && result->nr_pairs > 0);
}

/* The smaller of the two compilations' totals, which may differ. */
static uint64_t rounds_of(const struct me_region_marker *m)
{
	return m->total[ME_OLD] < m->total[ME_NEW] ? m->total[ME_OLD] : m->total[ME_NEW];
}

static void choose_marker(const struct me_compilations *result, int division,
			  struct me_compilations_row *row)
{
	const struct me_region_marker *markers = result->regions.markers;

	for (uint32_t i = 0; i < result->regions.nr_markers; i++)
		if (markers[i].region[division] == row->region && rounds_of(&markers[i]) &&
		    (row->marker == MP_NONE ||
		     rounds_of(&markers[i]) > rounds_of(&markers[row->marker])))
			row->marker = i;
	for (int b = 0; b < ME_NR_BUILDS && row->marker != MP_NONE; b++)
		row->round_ns[b] = 1e9 * row->seconds[b] / (double)markers[row->marker].total[b];
}

/* The function with the most samples of its own names the region. */
static void choose_function(const struct me_compilations *result, int division,
			    struct me_compilations_row *row)
{
	for (uint32_t i = 0; i < result->regions.nr_functions; i++) {
		const struct me_region_function *f = &result->regions.functions[i];

		if (f->region[division] != row->region)
			continue;
		if (row->function == MP_NONE ||
		    f->samples > result->regions.functions[row->function].samples)
			row->function = i;
	}
}

int me_compilations_rows(const struct me_compilations *result, int division,
			 struct me_compilations_row **out, size_t *nr)
{
	const struct me_region_test *list = result->tests.list;
	const struct me_region_test *whole = &list[result->tests.nr];
	double all = (double)(whole->samples[ME_OLD] + whole->samples[ME_NEW]);

	*nr = 0;
	*out = calloc((size_t)result->regions.nr[division] + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (uint32_t i = 0; i < result->regions.nr[division]; i++) {
		const struct me_region_test *c = &list[me_compilations_index(result, division, i)];
		struct me_compilations_row *row = &(*out)[*nr];

		*row = (struct me_compilations_row){
			.result = c, .region = i, .marker = MP_NONE, .function = MP_NONE};
		row->share = all ? (double)(c->samples[ME_OLD] + c->samples[ME_NEW]) / all : 0;
		if (!is_shown(result, c, row->share))
			continue;
		for (int b = 0; b < ME_NR_BUILDS; b++)
			row->seconds[b] = me_compilations_seconds(result, c->samples[b]);
		choose_marker(result, division, row);
		choose_function(result, division, row);
		(*nr)++;
	}
	qsort(*out, *nr, sizeof(**out), by_time);
	return 0;
}
