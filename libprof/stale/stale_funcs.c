// SPDX-License-Identifier: Apache-2.0
/*
 * stale_funcs - matches the functions of one build with those of another. It decides by
 * which evidence a function is matched: its name, its code, its place, its callers. Called
 * through stale.h.
 * 	old: a  B  c  d  E  f        Names and code that occur once are anchors (capitals). Anchors
 * 	     |     \  \  |           in the same order on both sides cut the files into gaps, and in
 * 	new: a  B  x  c  d' E  f     each gap the functions are aligned by similarity.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/stale/stale.h"

/* Least share of blocks with the same opcodes for a pair of functions. results.md ("A profile of
 * the build before") judges the pairs. */
#define ALIKE_IN_PLACE 0.3
#define ALIKE_ALONE    0.1 /* for the only functions in their gap, or callees of the same place */
/* Largest number of pairs to align: 4 MiB. A security update has far smaller gaps. */
#define GAP_PAIRS_MAX (1u << 20)
/* Weight of identical code; other similarities weigh at most 1. So a pair with the same code is
 * given up only for four pairs without (test_stale: functions that changed places). */
#define SAME_CODE 4.0f
/* Limit of rounds in which pairs of callers give pairs of callees. A round follows one level of
 * calls, and rounds end when one finds nothing. */
#define CALL_ROUNDS 8

const char *mp_stale_how_name(enum mp_stale_how how)
{
	static const char *const names[MP_NR_STALE_HOW] = {"not_found", "name", "code", "place",
							   "call"};

	return how < MP_NR_STALE_HOW ? names[how] : "?";
}

static int join(struct mp_stale_match *m, uint32_t from, uint32_t to, enum mp_stale_how how)
{
	m->func_to[from] = to;
	m->func_of[to] = from;
	m->how[from] = (uint8_t)how;
	return mp_stale_match_blocks(m, from, to);
}

/*
 * ---- unique names and code
 * --------------------------------------------------------------------
 */

struct keyed {
	uint64_t key; /* 0: none */
	uint32_t func;
};

static int keyed_compare(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->func < y->func ? -1 : x->func > y->func;
}

enum key_kind {
	KEY_NAME,
	KEY_FULL,
	KEY_LOOSE
};

static uint64_t key_of(const struct mp_print_func *func, enum key_kind kind)
{
	if (kind == KEY_NAME)
		return func->name;
	if (!func->nr_blocks || (kind == KEY_LOOSE && !func->nr_kept))
		return 0;
	return (uint64_t)func->nr_blocks << 32 | (kind == KEY_FULL ? func->full : func->loose) | 1;
}

static uint32_t keys_collect(const struct mp_fingerprint *print, const uint32_t *peer,
			     enum key_kind kind, struct keyed *out)
{
	uint32_t nr = 0;

	for (uint32_t f = 0; f < print->nr_funcs; f++) {
		uint64_t key = peer[f] == MP_NONE ? key_of(&print->funcs[f], kind) : 0;

		if (key)
			out[nr++] = (struct keyed){key, f};
	}
	qsort(out, nr, sizeof(*out), keyed_compare);
	return nr;
}

/* Different names are different functions, unless the code is the same. */
static bool names_differ(const struct mp_stale_match *m, uint32_t from, uint32_t to)
{
	uint32_t a = m->old_build->funcs[from].name, b = m->new_build->funcs[to].name;

	return a && b && a != b;
}

static uint32_t run_end(const struct keyed *keys, uint32_t nr, uint32_t i)
{
	uint32_t end = i;

	while (end < nr && keys[end].key == keys[i].key)
		end++;
	return end;
}

static int match_unique(struct mp_stale_match *m, enum key_kind kind)
{
	struct keyed *a = malloc(((size_t)m->old_build->nr_funcs + 1) * sizeof(*a));
	struct keyed *b = malloc(((size_t)m->new_build->nr_funcs + 1) * sizeof(*b));
	uint32_t nr_a, nr_b, i = 0, k = 0;
	int r = a && b ? 0 : -ENOMEM;

	nr_a = r ? 0 : keys_collect(m->old_build, m->func_to, kind, a);
	nr_b = r ? 0 : keys_collect(m->new_build, m->func_of, kind, b);
	while (i < nr_a && k < nr_b && !r) {
		uint32_t end_i = run_end(a, nr_a, i), end_k = run_end(b, nr_b, k);

		if (a[i].key != b[k].key) {
			bool before = a[i].key < b[k].key;

			i = before ? end_i : i;
			k = before ? k : end_k;
			continue;
		}
		if (end_i == i + 1 && end_k == k + 1 &&
		    (kind != KEY_LOOSE || !names_differ(m, a[i].func, b[k].func)))
			r = join(m, a[i].func, b[k].func,
				 kind == KEY_NAME ? MP_STALE_NAME : MP_STALE_CODE);
		i = end_i;
		k = end_k;
	}
	free(a);
	free(b);
	return r;
}

/*
 * ---- similarity of two functions
 * --------------------------------------------------------------
 */

static int compare_u16(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* The blocks' loose hashes, sorted. Return: NULL if out of memory. */
static uint16_t *loose_sorted(const struct mp_fingerprint *print, const struct mp_print_func *func)
{
	uint16_t *out = malloc(((size_t)func->nr_kept + 1) * sizeof(*out));

	if (!out)
		return NULL;
	for (uint32_t b = 0; b < func->nr_kept; b++)
		out[b] = print->blocks[func->first_block + b].loose;
	qsort(out, func->nr_kept, sizeof(*out), compare_u16);
	return out;
}

/* Share of the larger function's blocks that have a block with the same opcodes in the other. */
static float share_in_common(const uint16_t *a, uint32_t nr_a, const uint16_t *b, uint32_t nr_b)
{
	uint32_t i = 0, k = 0, same = 0;

	while (i < nr_a && k < nr_b) {
		if (a[i] == b[k])
			same++, i++, k++;
		else if (a[i] < b[k])
			i++;
		else
			k++;
	}
	return nr_a || nr_b ? (float)same / (float)(nr_a > nr_b ? nr_a : nr_b) : 0;
}

/* Sorted hashes per function of the old and the new build, made when first needed. */
struct alike {
	const struct mp_stale_match *m;
	uint16_t **old_loose, **new_loose;
	bool failed; /* out of memory */
};

static const uint16_t *loose_of(struct alike *alike, uint16_t **of,
				const struct mp_fingerprint *print, uint32_t f)
{
	if (!of[f])
		of[f] = loose_sorted(print, &print->funcs[f]);
	alike->failed |= !of[f];
	return of[f];
}

/* Similarity: 0 (none, or not known) to 1, or SAME_CODE. */
static float alike_weigh(struct alike *alike, uint32_t from, uint32_t to)
{
	const struct mp_fingerprint *old_build = alike->m->old_build,
				    *new_build = alike->m->new_build;
	const struct mp_print_func *a = &old_build->funcs[from], *b = &new_build->funcs[to];
	const uint16_t *x, *y;

	if (a->nr_blocks && a->nr_blocks == b->nr_blocks && a->full == b->full)
		return SAME_CODE;
	if (!a->nr_kept || !b->nr_kept || names_differ(alike->m, from, to) ||
	    a->nr_kept > 8 * (uint64_t)b->nr_kept || b->nr_kept > 8 * (uint64_t)a->nr_kept)
		return 0;
	x = loose_of(alike, alike->old_loose, old_build, from);
	y = loose_of(alike, alike->new_loose, new_build, to);
	return x && y ? share_in_common(x, a->nr_kept, y, b->nr_kept) : 0;
}

static int alike_init(struct alike *alike, const struct mp_stale_match *m)
{
	alike->m = m;
	alike->failed = false;
	alike->old_loose = calloc((size_t)m->old_build->nr_funcs + 1, sizeof(*alike->old_loose));
	alike->new_loose = calloc((size_t)m->new_build->nr_funcs + 1, sizeof(*alike->new_loose));
	return alike->old_loose && alike->new_loose ? 0 : -ENOMEM;
}

static void alike_fini(struct alike *alike)
{
	for (uint32_t f = 0; alike->old_loose && f < alike->m->old_build->nr_funcs; f++)
		free(alike->old_loose[f]);
	for (uint32_t f = 0; alike->new_loose && f < alike->m->new_build->nr_funcs; f++)
		free(alike->new_loose[f]);
	free(alike->old_loose);
	free(alike->new_loose);
}

/* ---- between the same functions -------------------------------------------------------------- */

/* Functions without a peer between two anchors. */
struct gap {
	uint32_t *a, *b;
	uint32_t nr_a, nr_b;
};

/*
 * Finds the ordered pairs with the largest sum of weights (Needleman and Wunsch, 1970).
 * best[i][k] is the largest sum for a[i..] and b[k..].
 */
static int gap_align(struct mp_stale_match *m, struct alike *alike, const struct gap *gap)
{
	const size_t width = (size_t)gap->nr_b + 1;
	/* If there is only one pair, its place is better evidence than its code. */
	const float least = gap->nr_a == 1 && gap->nr_b == 1 ? ALIKE_ALONE : ALIKE_IN_PLACE;
	float *weight, *best;
	int r = 0;

	if (!gap->nr_a || !gap->nr_b || (uint64_t)gap->nr_a * gap->nr_b > GAP_PAIRS_MAX)
		return 0;
	weight = malloc((size_t)gap->nr_a * width * sizeof(*weight));
	best = calloc(((size_t)gap->nr_a + 1) * width, sizeof(*best));
	if (!weight || !best)
		r = -ENOMEM;
	for (uint32_t i = gap->nr_a; i-- > 0 && !r;) {
		for (uint32_t k = gap->nr_b; k-- > 0;) {
			float w = alike_weigh(alike, gap->a[i], gap->b[k]);
			float skip = best[(i + 1) * width + k];

			weight[i * width + k] = w;
			if (best[i * width + k + 1] > skip)
				skip = best[i * width + k + 1];
			w = w >= least ? w + best[(i + 1) * width + k + 1] : 0;
			best[i * width + k] = w > skip ? w : skip;
		}
	}
	for (uint32_t i = 0, k = 0; i < gap->nr_a && k < gap->nr_b && !r;) {
		float w = weight[i * width + k], here = best[i * width + k];

		if (w >= least && here == w + best[(i + 1) * width + k + 1])
			r = join(m, gap->a[i++], gap->b[k++], MP_STALE_PLACE);
		else if (here == best[(i + 1) * width + k])
			i++;
		else
			k++;
	}
	free(weight);
	free(best);
	return r ? r : alike->failed ? -ENOMEM : 0;
}

/*
 * Finds the longest sequence of matched functions that ascends in both builds: the other
 * functions were moved. @row gets the old functions; @before and @tail are scratch of the
 * same size. Return: the length.
 */
static uint32_t longest_ascent(const struct mp_stale_match *m, uint32_t *row, uint32_t *before,
			       uint32_t *tail)
{
	uint32_t nr = 0, at;

	for (uint32_t f = 0; f < m->old_build->nr_funcs; f++) {
		uint32_t low;

		if (m->func_to[f] == MP_NONE)
			continue;
		low = mp_search(middle, 0, nr, m->func_to[tail[middle]] < m->func_to[f]);
		before[f] = low ? tail[low - 1] : MP_NONE;
		tail[low] = f;
		nr += low == nr;
	}
	at = nr ? tail[nr - 1] : MP_NONE;
	for (uint32_t i = nr; i-- > 0; at = before[at])
		row[i] = at;
	return nr;
}

static int match_places(struct mp_stale_match *m, struct alike *alike)
{
	const size_t nr_old = m->old_build->nr_funcs, nr_new = m->new_build->nr_funcs;
	uint32_t *row = malloc((nr_old + 1) * sizeof(*row));
	uint32_t *before = malloc((nr_old + 1) * sizeof(*before));
	uint32_t *tail = malloc((nr_old + 1) * sizeof(*tail));
	uint32_t *a = malloc((nr_old + 1) * sizeof(*a)), *b = malloc((nr_new + 1) * sizeof(*b));
	uint32_t nr_row, i = 0, k = 0;
	int r = row && before && tail && a && b ? 0 : -ENOMEM;

	nr_row = r ? 0 : longest_ascent(m, row, before, tail);
	for (uint32_t n = 0; n <= nr_row && !r; n++) {
		uint32_t end_i = n < nr_row ? row[n] : (uint32_t)nr_old;
		uint32_t end_k = n < nr_row ? m->func_to[row[n]] : (uint32_t)nr_new;
		struct gap gap = {.a = a, .b = b};

		for (; i < end_i; i++)
			if (m->func_to[i] == MP_NONE)
				a[gap.nr_a++] = i;
		for (; k < end_k; k++)
			if (m->func_of[k] == MP_NONE)
				b[gap.nr_b++] = k;
		r = gap_align(m, alike, &gap);
	}
	free(row);
	free(before);
	free(tail);
	free(a);
	free(b);
	return r;
}

/* ---- callees of the same place --------------------------------------------------------------- */

/* Matches the callees of the same call in both builds, if the blocks have equally many calls. */
static int match_callees(struct mp_stale_match *m, struct alike *alike, uint32_t old_block,
			 bool *any)
{
	const struct mp_print_block *a = &m->old_build->blocks[old_block];
	const struct mp_print_block *b = &m->new_build->blocks[m->block_to[old_block]];

	if (a->nr_calls != b->nr_calls)
		return 0;
	for (uint32_t c = 0; c < a->nr_calls; c++) {
		uint32_t from = m->old_build->calls[a->first_call + c].callee;
		uint32_t to = m->new_build->calls[b->first_call + c].callee;
		int r;

		if (from == MP_NONE || to == MP_NONE || m->func_to[from] != MP_NONE ||
		    m->func_of[to] != MP_NONE || alike_weigh(alike, from, to) < ALIKE_ALONE)
			continue;
		r = join(m, from, to, MP_STALE_CALL);
		if (r)
			return r;
		*any = true;
	}
	return 0;
}

static int match_calls(struct mp_stale_match *m, struct alike *alike)
{
	bool any = true;

	for (int round = 0; round < CALL_ROUNDS && any; round++) {
		any = false;
		for (uint32_t b = 0; b < m->old_build->nr_blocks; b++) {
			int r = m->block_to[b] == MP_NONE ? 0 : match_callees(m, alike, b, &any);

			if (r)
				return r;
		}
	}
	return alike->failed ? -ENOMEM : 0;
}

/* ---- the whole match ------------------------------------------------------------------------ */

static uint32_t *none_new(uint32_t nr)
{
	uint32_t *out = malloc(((size_t)nr + 1) * sizeof(*out));

	if (out)
		memset(out, 0xff, ((size_t)nr + 1) * sizeof(*out));
	return out;
}

int mp_stale_match(const struct mp_fingerprint *old_build, const struct mp_fingerprint *new_build,
		   struct mp_stale_match *out, struct mp_err *err)
{
	struct alike alike = {0};
	int r;

	*out = (struct mp_stale_match){.old_build = old_build, .new_build = new_build};
	out->func_to = none_new(old_build->nr_funcs);
	out->func_of = none_new(new_build->nr_funcs);
	out->block_to = none_new(old_build->nr_blocks);
	out->block_of = none_new(new_build->nr_blocks);
	out->how = calloc((size_t)old_build->nr_funcs + 1, 1);
	r = alike_init(&alike, out);
	if (!out->func_to || !out->func_of || !out->block_to || !out->block_of || !out->how)
		r = -ENOMEM;
	for (int kind = KEY_NAME; kind <= KEY_LOOSE && !r; kind++)
		r = match_unique(out, (enum key_kind)kind);
	if (!r)
		r = match_places(out, &alike);
	if (!r)
		r = match_calls(out, &alike);
	/* Callees that were matched are anchors, too. */
	if (!r)
		r = match_places(out, &alike);
	alike_fini(&alike);
	if (!r)
		return 0;
	mp_stale_match_fini(out);
	return mp_err_set(err, ENOMEM, "out of memory");
}

void mp_stale_match_fini(struct mp_stale_match *match)
{
	free(match->func_to);
	free(match->func_of);
	free(match->block_to);
	free(match->block_of);
	free(match->how);
	*match = (struct mp_stale_match){0};
}
