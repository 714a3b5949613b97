// SPDX-License-Identifier: Apache-2.0
/*
 * stale_blocks - matches the blocks of one function with those of another version of the
 * function. It decides which pairs are similar enough to carry a count. Called by
 * stale_funcs for each pair of functions.
 *
 * Four keys, from the strongest evidence to the weakest. A block is matched once:
 * 	0  the same instructions, and neighbours with the same instructions
 * 	1  the same instructions
 * 	2  the same opcodes, and neighbours with the same opcodes
 * 	3  the same opcodes
 * The first rounds match only groups with equally many blocks on both sides, and blocks
 * next to a matched one. Then follow blocks that the same kind of edge leads to from a
 * matched block; at last all others with the same key.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/stale/stale.h"

enum {
	NR_ROUNDS = 4,
	/* One pass follows a chain of ascending blocks to its end, so few passes are needed. */
	PASSES_MAX = 16,
	/* Groups of at most this many blocks are compared pair by pair. */
	GROUP_MAX = 64,
};

/* A block of the function, with its key of the current round. */
struct keyed {
	uint32_t key, index;
};

struct side {
	const struct mp_fingerprint *print;
	const struct mp_print_func *func;
	const struct mp_print_block *blocks; /* blocks of the function */
	uint32_t *peer;		   /* per block: the block of the other side, or MP_NONE */
	uint32_t *keys[NR_ROUNDS]; /* per block */
	struct keyed *open;	   /* blocks without a peer, sorted by key, then index */
	uint32_t nr_open;
	uint32_t *nr_in; /* per block: number of edges that lead to it */
};

struct pair {
	struct side a, b;
};

static void side_fini(struct side *side)
{
	free(side->peer);
	for (int r = 0; r < NR_ROUNDS; r++)
		free(side->keys[r]);
	free(side->open);
	free(side->nr_in);
}

/*
 * Each neighbour adds its hash and the direction of the edge; the order of neighbours does
 * not matter.
 */
static void keys_fill(struct side *side)
{
	const uint32_t nr = side->func->nr_kept;
	uint32_t *full = side->keys[0], *loose = side->keys[2];

	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_print_block *block = &side->blocks[i];

		for (uint32_t e = 0; e < block->nr_edges; e++) {
			const struct mp_print_edge *edge =
				&side->print->edges[block->first_edge + e];
			const struct mp_print_block *to = &side->blocks[edge->to];

			full[i] += mp_print_mix(to->full, 1);
			loose[i] += mp_print_mix(to->loose, 1);
			full[edge->to] += mp_print_mix(block->full, 2);
			loose[edge->to] += mp_print_mix(block->loose, 2);
			side->nr_in[edge->to]++;
		}
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_print_block *block = &side->blocks[i];

		side->keys[1][i] = mp_print_mix(block->full, block->nr_insns);
		side->keys[3][i] = mp_print_mix(block->loose, block->nr_insns);
		full[i] = mp_print_mix(full[i], side->keys[1][i]);
		loose[i] = mp_print_mix(loose[i], side->keys[3][i]);
	}
}

static int side_init(struct side *side, const struct mp_fingerprint *print, uint32_t func)
{
	size_t nr;

	side->print = print;
	side->func = &print->funcs[func];
	side->blocks = &print->blocks[side->func->first_block];
	nr = (size_t)side->func->nr_kept + 1;
	side->peer = malloc(nr * sizeof(*side->peer));
	side->open = malloc(nr * sizeof(*side->open));
	side->nr_in = calloc(nr, sizeof(*side->nr_in));
	if (!side->peer || !side->open || !side->nr_in)
		return -ENOMEM;
	memset(side->peer, 0xff, nr * sizeof(*side->peer)); /* MP_NONE */
	for (int r = 0; r < NR_ROUNDS; r++) {
		side->keys[r] = calloc(nr, sizeof(*side->keys[r]));
		if (!side->keys[r])
			return -ENOMEM;
	}
	keys_fill(side);
	return 0;
}

static int keyed_compare(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Leaves out blocks of a jump or no-ops alone in rounds without neighbours: they all look alike. */
static void side_open(struct side *side, int round)
{
	bool alone = round == 1 || round == 3;

	side->nr_open = 0;
	for (uint32_t i = 0; i < side->func->nr_kept; i++)
		if (side->peer[i] == MP_NONE && (!alone || side->blocks[i].nr_insns))
			side->open[side->nr_open++] = (struct keyed){side->keys[round][i], i};
	qsort(side->open, side->nr_open, sizeof(*side->open), keyed_compare);
}

static void join(struct pair *p, uint32_t a, uint32_t b)
{
	p->a.peer[a] = b;
	p->b.peer[b] = a;
}

/* ---- similar blocks -------------------------------------------------------------------------- */

/* True if the blocks before @a and @b are a pair, or those behind them. */
static bool fits_between(const struct pair *p, uint32_t a, uint32_t b)
{
	if (a > 0 && b > 0 && p->a.peer[a - 1] == b - 1)
		return true;
	return a + 1 < p->a.func->nr_kept && b + 1 < p->b.func->nr_kept &&
	       p->a.peer[a + 1] == b + 1;
}

/*
 * With equally many blocks on both sides, pairs them in order. Otherwise pairs blocks whose
 * neighbour in the file is matched; each pair may let its own neighbour fit. If not @sure,
 * pairs the rest in order.
 */
static void join_group(struct pair *p, const struct keyed *a, uint32_t nr_a, const struct keyed *b,
		       uint32_t nr_b, bool sure)
{
	if (nr_a != nr_b) {
		for (uint32_t i = 0; i < nr_a; i++)
			for (uint32_t k = 0; k < nr_b && nr_a <= GROUP_MAX && nr_b <= GROUP_MAX;
			     k++)
				if (p->a.peer[a[i].index] == MP_NONE &&
				    p->b.peer[b[k].index] == MP_NONE &&
				    fits_between(p, a[i].index, b[k].index))
					join(p, a[i].index, b[k].index);
		if (sure)
			return;
	}
	for (uint32_t i = 0, k = 0;; i++, k++) {
		while (i < nr_a && p->a.peer[a[i].index] != MP_NONE)
			i++;
		while (k < nr_b && p->b.peer[b[k].index] != MP_NONE)
			k++;
		if (i >= nr_a || k >= nr_b)
			return;
		join(p, a[i].index, b[k].index);
	}
}

static void match_round(struct pair *p, int round, bool sure)
{
	const struct keyed *a, *b;
	uint32_t i = 0, k = 0;

	side_open(&p->a, round);
	side_open(&p->b, round);
	a = p->a.open;
	b = p->b.open;
	while (i < p->a.nr_open && k < p->b.nr_open) {
		uint32_t end_i = i, end_k = k;

		if (a[i].key != b[k].key) {
			i += a[i].key < b[k].key;
			k += a[end_i].key > b[k].key;
			continue;
		}
		while (end_i < p->a.nr_open && a[end_i].key == a[i].key)
			end_i++;
		while (end_k < p->b.nr_open && b[end_k].key == b[k].key)
			end_k++;
		join_group(p, a + i, end_i - i, b + k, end_k - k, sure);
		i = end_i;
		k = end_k;
	}
}

/* ---- blocks in the same place --------------------------------------------------------------- */

/* The only successor of @block without a peer, by an edge of @kind; MP_NONE: none, or several. */
static uint32_t open_successor(const struct side *side, uint32_t block, uint8_t kind)
{
	const struct mp_print_block *from = &side->blocks[block];
	uint32_t found = MP_NONE;

	for (uint32_t e = from->first_edge; e < from->first_edge + from->nr_edges; e++) {
		const struct mp_print_edge *edge = &side->print->edges[e];

		if (edge->kind != kind || side->peer[edge->to] != MP_NONE)
			continue;
		if (found != MP_NONE)
			return MP_NONE;
		found = edge->to;
	}
	return found;
}

/* A changed block is matched by the edge that leads to it, if as many edges lead to both blocks. */
static bool match_successors_once(struct pair *p)
{
	bool any = false;

	for (uint32_t a = 0; a < p->a.func->nr_kept; a++) {
		if (p->a.peer[a] == MP_NONE)
			continue;
		for (uint8_t kind = MP_EDGE_FALL; kind < MP_EDGE_TABLE; kind++) {
			uint32_t x = open_successor(&p->a, a, kind);
			uint32_t y = open_successor(&p->b, p->a.peer[a], kind);

			if (x == MP_NONE || y == MP_NONE || p->a.nr_in[x] != p->b.nr_in[y] ||
			    p->a.blocks[x].nr_edges != p->b.blocks[y].nr_edges)
				continue;
			join(p, x, y);
			any = true;
		}
	}
	return any;
}

/* Each pass may match blocks that lead on to more. */
static void match_successors(struct pair *p)
{
	for (int pass = 0; pass < PASSES_MAX; pass++)
		if (!match_successors_once(p))
			return;
}

int mp_stale_match_blocks(struct mp_stale_match *match, uint32_t from, uint32_t to)
{
	const struct mp_print_func *old_func = &match->old_build->funcs[from],
				   *new_func = &match->new_build->funcs[to];
	struct pair p = {0};
	int r;

	if (!old_func->nr_kept || !new_func->nr_kept)
		return 0;
	r = side_init(&p.a, match->old_build, from);
	if (!r)
		r = side_init(&p.b, match->new_build, to);
	if (!r) {
		if (old_func->entry != MP_NONE && new_func->entry != MP_NONE)
			join(&p, old_func->entry, new_func->entry);
		for (int i = 0; i < 2 * NR_ROUNDS; i++) {
			match_round(&p, i % NR_ROUNDS, i < NR_ROUNDS);
			if (i >= NR_ROUNDS - 1)
				match_successors(&p);
		}
	}
	for (uint32_t i = 0; !r && i < old_func->nr_kept; i++) {
		uint32_t peer = p.a.peer[i];

		if (peer == MP_NONE)
			continue;
		match->block_to[old_func->first_block + i] = new_func->first_block + peer;
		match->block_of[new_func->first_block + peer] = old_func->first_block + i;
	}
	side_fini(&p.a);
	side_fini(&p.b);
	return r;
}
