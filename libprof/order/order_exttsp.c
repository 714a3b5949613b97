// SPDX-License-Identifier: Apache-2.0
/*
 * order_exttsp - merges chains of blocks, always by the merge that adds most to the score, as in
 * section 4 of the paper. A merge puts one chain behind the other, or cuts one chain in two and
 * puts the other chain between or beside the parts.
 *
 * A chain is cut only where that makes a new fall-through, and only while it is short; other cuts
 * gain hardly anything and would cost most of the time. Gains are kept in a queue (order_pairs);
 * a merge works out anew those of the new chain.
 */
#include "libprof/order/order_exttsp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "libprof/order/order_pairs.h"

#define NONE MP_PAIRS_NONE

/* Newell and Pupyrev, "Improved Basic Block Reordering" (IEEE Transactions on Computers, 2020). */
#define JUMP_WEIGHT    0.1
#define FORWARD_BYTES  1024
#define BACKWARD_BYTES 640
/* Longer chains are not cut. LLVM's limit: -ext-tsp-chain-split-threshold. */
#define MAX_CUT_BLOCKS 128

/* Ways to merge chain X, with first part X1 and last part X2, and chain Y. */
enum way {
	WAY_X_Y,
	WAY_Y_X,
	WAY_X1_Y_X2,
	WAY_Y_X2_X1,
	WAY_X2_X1_Y,
};

struct merge {
	double gain;
	uint32_t x, y; /* chains */
	uint32_t cut;  /* last block of X1; NONE: not cut */
	enum way way;
};

struct chain {
	uint32_t head, tail, nr_blocks;
	uint32_t bytes;
	double count;		   /* of executed bytes */
	double pull;		   /* count of links between it and placed chains */
	uint32_t links, last_link; /* inside the chain, linked by behind[]; or NONE */
};

struct state {
	const struct mp_exttsp *p;
	struct chain *chains;	      /* by their number: that of a block in it */
	uint32_t *chain_of;	      /* per block */
	uint32_t *next;		      /* per block: the one behind it in its chain */
	uint32_t *index;	      /* per block: place in its chain */
	uint32_t *start;	      /* per block: address in its chain */
	uint32_t *behind;	      /* per link: the next one inside its chain */
	uint32_t *out_link, *in_link; /* per block: first link from it, to it */
	uint32_t *next_out, *next_in; /* per link */
	struct merge *merges;	      /* per pair: the best one */
	struct mp_pairs pairs;
	double least; /* smaller gains are rounding errors */
};

static double jump_score(const struct mp_exttsp_link *link, uint64_t from_end, uint64_t to)
{
	uint64_t bytes = to >= from_end ? to - from_end : from_end - to;
	uint64_t reach = to >= from_end ? FORWARD_BYTES : BACKWARD_BYTES;

	if (bytes >= reach)
		return 0;
	return JUMP_WEIGHT * link->count * (1 - (double)bytes / (double)reach);
}

static double link_score(const struct mp_exttsp_link *link, bool adjacent, uint64_t from_end,
			 uint64_t to)
{
	if (adjacent && link->fall > 0)
		return link->fall;
	return jump_score(link, from_end, to);
}

double mp_exttsp_score(const struct mp_exttsp *problem, const uint32_t *order, uint64_t *start,
		       uint32_t *place)
{
	uint64_t at = 0;
	double sum = 0;

	for (uint32_t i = 0; i < problem->nr_blocks; i++) {
		place[order[i]] = i;
		start[order[i]] = at;
		at += problem->sizes[order[i]];
	}
	for (uint32_t i = 0; i < problem->nr_links; i++) {
		const struct mp_exttsp_link *link = &problem->links[i];

		sum += link_score(link, place[link->to] == place[link->from] + 1,
				  start[link->from] + problem->sizes[link->from], start[link->to]);
	}
	return sum;
}

/* The three stretches of a merged chain in their new order. */
struct slice {
	uint32_t base;	      /* new address of its start, less its old one */
	uint32_t first, last; /* blocks */
	uint32_t turn;	      /* place among the slices */
};

enum slice_name {
	SLICE_X1,
	SLICE_X2,
	SLICE_Y,
	NR_SLICES
};

static const uint8_t turns[][NR_SLICES] = {
	/* of X1, X2, Y */
	[WAY_X_Y] = {0, 1, 2},	   [WAY_Y_X] = {1, 2, 0},     [WAY_X1_Y_X2] = {0, 2, 1},
	[WAY_Y_X2_X1] = {2, 1, 0}, [WAY_X2_X1_Y] = {1, 0, 2},
};

static enum slice_name slice_of(const struct state *s, const struct merge *m, uint32_t block)
{
	if (s->chain_of[block] == m->y)
		return SLICE_Y;
	return m->cut != NONE && s->index[block] > s->index[m->cut] ? SLICE_X2 : SLICE_X1;
}

static void slices_set(const struct state *s, const struct merge *m,
		       struct slice slices[static NR_SLICES])
{
	const struct chain *x = &s->chains[m->x], *y = &s->chains[m->y];
	uint32_t at = 0, sizes[NR_SLICES], starts[NR_SLICES] = {0, 0, 0};

	sizes[SLICE_Y] = y->bytes;
	sizes[SLICE_X1] = x->bytes;
	sizes[SLICE_X2] = 0;
	slices[SLICE_X1] = (struct slice){0, x->head, x->tail, 0};
	slices[SLICE_X2] = (struct slice){0, NONE, NONE, 0};
	slices[SLICE_Y] = (struct slice){0, y->head, y->tail, 0};
	if (m->cut != NONE) {
		starts[SLICE_X2] = s->start[s->next[m->cut]];
		sizes[SLICE_X1] = starts[SLICE_X2];
		sizes[SLICE_X2] = x->bytes - starts[SLICE_X2];
		slices[SLICE_X1].last = m->cut;
		slices[SLICE_X2].first = s->next[m->cut];
		slices[SLICE_X2].last = x->tail;
	}
	for (uint32_t turn = 0; turn < NR_SLICES; turn++)
		for (int i = 0; i < NR_SLICES; i++)
			if (turns[m->way][i] == turn) {
				slices[i].turn = turn;
				slices[i].base = at - starts[i];
				at += sizes[i];
			}
}

static double cross_score(const struct state *s, const struct merge *m, const struct slice *slices,
			  uint32_t l)
{
	const struct mp_exttsp_link *link = &s->p->links[l];
	const struct slice *from = &slices[slice_of(s, m, link->from)];
	const struct slice *to = &slices[slice_of(s, m, link->to)];
	uint32_t gap = to->turn - from->turn;
	bool adjacent = link->from == from->last && link->to == to->first &&
			(gap == 1 || (gap == 2 && m->cut == NONE && m->way == WAY_X_Y));

	return link_score(link, adjacent,
			  from->base + s->start[link->from] + s->p->sizes[link->from],
			  to->base + s->start[link->to]);
}

/* The gain of the merge @m. Links inside the slices do not change. */
static double merge_gain(const struct state *s, const struct merge *m, uint32_t pair)
{
	struct slice slices[NR_SLICES];
	double sum = 0;

	slices_set(s, m, slices);
	for (uint32_t l = s->pairs.pairs[pair].first_link; l != NONE; l = s->pairs.next_link[l])
		sum += cross_score(s, m, slices, l);
	if (m->cut == NONE)
		return sum;
	for (uint32_t l = s->chains[m->x].links; l != NONE; l = s->behind[l]) {
		const struct mp_exttsp_link *link = &s->p->links[l];

		if ((s->index[link->from] > s->index[m->cut]) ==
		    (s->index[link->to] > s->index[m->cut]))
			continue;
		sum += cross_score(s, m, slices, l) -
		       link_score(link, s->index[link->to] == s->index[link->from] + 1,
				  s->start[link->from] + s->p->sizes[link->from],
				  s->start[link->to]);
	}
	return sum;
}

static bool way_allowed(const struct state *s, const struct merge *m)
{
	bool y_first = m->way == WAY_Y_X || m->way == WAY_Y_X2_X1;

	if (s->p->entry == NONE)
		return true;
	if (s->chain_of[s->p->entry] == m->y)
		return y_first;
	return s->chain_of[s->p->entry] != m->x || (!y_first && m->way != WAY_X2_X1_Y);
}

static void merge_try(const struct state *s, struct merge *best, uint32_t pair, uint32_t x,
		      uint32_t y, uint32_t cut, enum way way)
{
	struct merge m = {0, x, y, cut, way};

	if (!way_allowed(s, &m))
		return;
	m.gain = merge_gain(s, &m, pair);
	if (m.gain > best->gain)
		*best = m;
}

/* Tries cuts of @x at which the head or tail of @y can fall through. */
static void cuts_try(const struct state *s, struct merge *best, uint32_t pair, uint32_t x,
		     uint32_t y)
{
	const struct mp_exttsp *p = s->p;

	if (s->chains[x].nr_blocks > MAX_CUT_BLOCKS)
		return;
	for (uint32_t l = s->in_link[s->chains[y].head]; l != NONE; l = s->next_in[l]) {
		uint32_t from = p->links[l].from;

		if (s->chain_of[from] != x || from == s->chains[x].tail || !(p->links[l].fall > 0))
			continue;
		merge_try(s, best, pair, x, y, from, WAY_X1_Y_X2);
		merge_try(s, best, pair, x, y, from, WAY_X2_X1_Y);
	}
	for (uint32_t l = s->out_link[s->chains[y].tail]; l != NONE; l = s->next_out[l]) {
		uint32_t to = p->links[l].to, cut;

		if (s->chain_of[to] != x || to == s->chains[x].head || !(p->links[l].fall > 0))
			continue;
		for (cut = s->chains[x].head; s->next[cut] != to;)
			cut = s->next[cut];
		merge_try(s, best, pair, x, y, cut, WAY_X1_Y_X2);
		merge_try(s, best, pair, x, y, cut, WAY_Y_X2_X1);
	}
}

static int pair_rate(struct state *s, uint32_t pair)
{
	uint32_t a = s->pairs.pairs[pair].a, b = s->pairs.pairs[pair].b;
	struct merge *best = &s->merges[pair];

	*best = (struct merge){.gain = s->least};
	merge_try(s, best, pair, a, b, NONE, WAY_X_Y);
	merge_try(s, best, pair, a, b, NONE, WAY_Y_X);
	cuts_try(s, best, pair, a, b);
	cuts_try(s, best, pair, b, a);
	return mp_pairs_rate(&s->pairs, pair, best->gain > s->least ? best->gain : 0);
}

/* Links the slices together and numbers their blocks anew. */
static void chain_string(struct state *s, const struct merge *m, uint32_t into)
{
	struct slice slices[NR_SLICES], *by_turn[NR_SLICES];
	struct chain *chain = &s->chains[into];
	uint32_t last = NONE, nr = 0, at = 0;

	slices_set(s, m, slices);
	for (int i = 0; i < NR_SLICES; i++)
		by_turn[slices[i].turn] = &slices[i];
	for (int i = 0; i < NR_SLICES; i++) {
		if (by_turn[i]->first == NONE)
			continue;
		if (last == NONE)
			chain->head = by_turn[i]->first;
		else
			s->next[last] = by_turn[i]->first;
		last = by_turn[i]->last;
	}
	s->next[last] = NONE;
	chain->tail = last;
	for (uint32_t b = chain->head; b != NONE; b = s->next[b]) {
		s->chain_of[b] = into;
		s->index[b] = nr++;
		s->start[b] = at;
		at += s->p->sizes[b];
	}
	chain->nr_blocks = nr;
	chain->bytes = at;
}

/* Links between the two chains, and links inside the other one, now lie inside the merged chain. */
static void links_move(struct state *s, uint32_t into, uint32_t other, const struct mp_pair *pair)
{
	struct chain *to = &s->chains[into], *from = &s->chains[other];

	for (uint32_t l = pair->first_link; l != NONE; l = s->pairs.next_link[l]) {
		s->behind[l] = to->links;
		if (to->links == NONE)
			to->last_link = l;
		to->links = l;
	}
	if (from->links == NONE)
		return;
	s->behind[to->last_link] = from->links;
	to->last_link = from->last_link;
}

static int pair_merge(struct state *s, uint32_t pair)
{
	const struct mp_pair *p = &s->pairs.pairs[pair];
	struct merge m = s->merges[pair];
	const uint32_t *ids;
	uint32_t into, other, nr_a = mp_pairs_of(&s->pairs, p->a, &ids);
	uint32_t nr_b = mp_pairs_of(&s->pairs, p->b, &ids), nr;
	int ret;

	into = nr_a >= nr_b ? p->a : p->b;
	other = into == p->a ? p->b : p->a;
	links_move(s, into, other, p);
	chain_string(s, &m, into);
	s->chains[into].count += s->chains[other].count;
	s->chains[other].nr_blocks = 0;
	ret = mp_pairs_fold(&s->pairs, into, other);
	nr = mp_pairs_of(&s->pairs, into, &ids);
	for (uint32_t i = 0; i < nr && !ret; i++)
		if (!s->pairs.pairs[ids[i]].gone)
			ret = pair_rate(s, ids[i]);
	return ret;
}

static void state_start(struct state *s)
{
	const struct mp_exttsp *p = s->p;
	double most = 0;

	for (uint32_t b = 0; b < p->nr_blocks; b++) {
		s->chains[b] = (struct chain){b, b,    1,   p->sizes[b], p->counts[b] * p->sizes[b],
					      0, NONE, NONE};
		s->chain_of[b] = b;
		s->next[b] = s->in_link[b] = s->out_link[b] = NONE;
		s->index[b] = s->start[b] = 0;
	}
	for (uint32_t l = p->nr_links; l-- > 0;) {
		const struct mp_exttsp_link *link = &p->links[l];

		most = link->fall > most ? link->fall : most;
		s->next_out[l] = s->out_link[link->from];
		s->out_link[link->from] = l;
		s->next_in[l] = s->in_link[link->to];
		s->in_link[link->to] = l;
	}
	s->least = 1e-9 * most;
}

static int chains_merge(struct state *s)
{
	const struct mp_exttsp *p = s->p;
	struct mp_pairs_link *links = malloc(((size_t)p->nr_links + 1) * sizeof(*links));
	uint32_t best;
	int ret = -ENOMEM;

	if (!links)
		return ret;
	for (uint32_t l = 0; l < p->nr_links; l++)
		links[l] = (struct mp_pairs_link){p->links[l].from, p->links[l].to};
	ret = mp_pairs_init(&s->pairs, p->nr_blocks, links, p->nr_links);
	free(links);
	if (ret)
		return ret;
	s->merges = malloc(((size_t)s->pairs.nr_pairs + 1) * sizeof(*s->merges));
	if (!s->merges)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->pairs.nr_pairs && !ret; i++)
		ret = pair_rate(s, i);
	while (!ret && (best = mp_pairs_best(&s->pairs)) != MP_PAIRS_NONE)
		ret = pair_merge(s, best);
	return ret;
}

static bool chain_goes_before(const struct state *s, uint32_t a, uint32_t b)
{
	const struct chain *x = &s->chains[a], *y = &s->chains[b];

	if (s->p->entry != NONE && (s->chain_of[s->p->entry] == a || s->chain_of[s->p->entry] == b))
		return s->chain_of[s->p->entry] == a;
	if (x->pull != y->pull)
		return x->pull > y->pull;
	if (x->count * y->bytes != y->count * x->bytes)
		return x->count * y->bytes > y->count * x->bytes;
	return x->head < y->head;
}

static void chain_place(struct state *s, uint32_t c, uint32_t *out, uint32_t *nr_out)
{
	for (uint32_t b = s->chains[c].head; b != NONE; b = s->next[b]) {
		out[(*nr_out)++] = b;
		for (uint32_t l = s->out_link[b]; l != NONE; l = s->next_out[l])
			s->chains[s->chain_of[s->p->links[l].to]].pull += s->p->links[l].count;
	}
}

/* After the chain of the entry, always places the chain with the most links from placed chains.
 * The remaining chains gain nothing from a merge. */
static void chains_place(struct state *s, uint32_t *out)
{
	uint32_t nr_out = 0, nr = 0, *left = s->index; /* reused: not needed any more */

	for (uint32_t c = 0; c < s->p->nr_blocks; c++)
		if (s->chains[c].nr_blocks)
			left[nr++] = c;
	while (nr) {
		uint32_t best = 0;

		for (uint32_t i = 1; i < nr; i++)
			if (chain_goes_before(s, left[i], left[best]))
				best = i;
		chain_place(s, left[best], out, &nr_out);
		left[best] = left[--nr];
	}
}

int mp_exttsp_order(const struct mp_exttsp *problem, uint32_t *out)
{
	struct state s = {.p = problem};
	size_t nr = (size_t)problem->nr_blocks + 1, nr_links = (size_t)problem->nr_links + 1;
	uint32_t *words = malloc((6 * nr + 3 * nr_links) * sizeof(*words));
	int ret = -ENOMEM;

	s.chains = malloc(nr * sizeof(*s.chains));
	if (!words || !s.chains)
		goto out;
	s.chain_of = words;
	s.next = words + nr;
	s.index = words + 2 * nr;
	s.start = words + 3 * nr;
	s.out_link = words + 4 * nr;
	s.in_link = words + 5 * nr;
	s.behind = words + 6 * nr;
	s.next_out = s.behind + nr_links;
	s.next_in = s.next_out + nr_links;
	state_start(&s);
	ret = chains_merge(&s);
	if (!ret)
		chains_place(&s, out);
out:
	mp_pairs_fini(&s.pairs);
	free(s.merges);
	free(s.chains);
	free(words);
	return ret;
}
