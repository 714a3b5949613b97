// SPDX-License-Identifier: Apache-2.0
/*
 * layout_improve - a local search, as Young et al. (PLDI 1997) exchange three links at a time. A step chooses a link,
 * gives up the links that exclude it, and fills the gaps with the best links that fit. A step that gains nothing is
 * undone.
 *
 * Loops need this. Where a loop is left from its middle, the heaviest link may be one whose choice makes the ways
 * into the loop and out of it jump.
 */
#include "editor/layout/layout_improve.h"

#include <errno.h>
#include <stdlib.h>

#define NONE UINT32_MAX
/* Nearly all gains come in the first two passes over all links. */
#define MAX_PASSES 8
/* Long chains of large functions are not searched to the end: so many links are looked at for each link. */
#define MAX_WORK 512
/* A new link must not make a chain a cycle: one link of the chain is given up for that. At most so many are tried. */
#define MAX_CUTS 32
/* Smaller gains, as a share of what a step exchanges, are errors of rounding. */
#define LEAST_GAIN 1e-9
/* A step gives up at most three links. What fills the gaps takes one of their six ends each. */
#define MAX_ENDS    3
#define MAX_CHANGES (MAX_ENDS + 1 + 2 * MAX_ENDS)

struct search {
	struct me_improve_link *links;
	uint32_t *from, *to;	      /* per block: the chosen link from it, to it; or NONE */
	uint32_t *out, *in;	      /* per block: its first link */
	uint32_t *next_out, *next_in; /* per link */
	uint64_t work;		      /* links that may still be looked at */
};

/* The changes of one step so far, and what they gained. */
struct step {
	double gain, exchanged;
	uint32_t changed[MAX_CHANGES]; /* links, in this order */
	uint32_t tails[MAX_ENDS],
		heads[MAX_ENDS]; /* blocks that links were given up from, and to */
	uint32_t nr_changed, nr_ends;
};

static void link_change(struct search *s, uint32_t l)
{
	struct me_improve_link *link = &s->links[l];

	link->chosen = !link->chosen;
	s->from[link->from] = s->to[link->to] = link->chosen ? l : NONE;
}

/* Chooses link @l, or gives it up. */
static void step_change(struct search *s, struct step *step, uint32_t l)
{
	const struct me_improve_link *link = &s->links[l];

	step->exchanged += link->gain;
	step->gain += link->chosen ? -link->gain : link->gain;
	if (link->chosen) {
		step->tails[step->nr_ends] = link->from;
		step->heads[step->nr_ends++] = link->to;
	}
	step->changed[step->nr_changed++] = l;
	link_change(s, l);
}

static void step_undo(struct search *s, struct step *step)
{
	while (step->nr_changed)
		link_change(s, step->changed[--step->nr_changed]);
}

/* Does the chain lead from block @b to block @to? */
static bool leads_to(struct search *s, uint32_t b, uint32_t to)
{
	for (; b != to; b = s->links[s->from[b]].to) {
		if (s->from[b] == NONE)
			return false;
		s->work -= s->work > 0;
	}
	return true;
}

/* Makes link @l the *@best, if it is worth more and fits. */
static void consider(struct search *s, uint32_t l, uint32_t *best)
{
	const struct me_improve_link *link = &s->links[l];

	s->work -= s->work > 0;
	if (link->gain > (*best == NONE ? 0 : s->links[*best].gain) &&
	    s->from[link->from] == NONE && s->to[link->to] == NONE &&
	    !leads_to(s, link->to, link->from))
		*best = l;
}

/* Chooses the best links at the ends of those that were given up. */
static void step_fill(struct search *s, struct step *step)
{
	for (;;) {
		uint32_t best = NONE;

		for (uint32_t i = 0; i < step->nr_ends; i++) {
			for (uint32_t l = s->out[step->tails[i]]; l != NONE; l = s->next_out[l])
				consider(s, l, &best);
			for (uint32_t l = s->in [step->heads[i]]; l != NONE; l = s->next_in[l])
				consider(s, l, &best);
		}
		if (best == NONE)
			return;
		step_change(s, step, best);
	}
}

/* Chooses link @l instead of those at its ends and of @cut, if that is not NONE. Return: it gained. */
static bool try_step(struct search *s, uint32_t l, uint32_t cut)
{
	const struct me_improve_link *link = &s->links[l];
	struct step step = {0};

	if (s->from[link->from] != NONE)
		step_change(s, &step, s->from[link->from]);
	if (s->to[link->to] != NONE)
		step_change(s, &step, s->to[link->to]);
	if (cut != NONE)
		step_change(s, &step, cut);
	step_change(s, &step, l);
	step_fill(s, &step);
	if (step.gain > LEAST_GAIN * step.exchanged)
		return true;
	step_undo(s, &step);
	return false;
}

/* Return: some solution with link @l is worth more, and is the solution now. */
static bool try_link(struct search *s, uint32_t l)
{
	uint32_t b = s->links[l].to, end = s->links[l].from;

	if (!leads_to(s, b, end))
		return try_step(s, l, NONE);
	for (int i = 0; b != end && i < MAX_CUTS; i++) {
		uint32_t cut = s->from[b];

		if (try_step(s, l, cut))
			return true;
		b = s->links[cut].to;
	}
	return false;
}

static void search_all(struct search *s, uint32_t nr_links)
{
	bool gained = true;

	for (int pass = 0; pass < MAX_PASSES && gained; pass++) {
		gained = false;
		for (uint32_t l = 0; l < nr_links && s->work; l++)
			if (!s->links[l].chosen && s->links[l].gain > 0)
				gained |= try_link(s, l);
	}
}

int me_links_improve(struct me_improve_link *links, uint32_t nr_links, uint32_t nr_blocks)
{
	uint32_t *all = malloc((4 * (size_t)nr_blocks + 2 * (size_t)nr_links + 1) * sizeof(*all));
	struct search s = {.links = links, .work = (uint64_t)MAX_WORK * nr_links};

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < 4 * (size_t)nr_blocks; i++)
		all[i] = NONE;
	s.from = all;
	s.to = s.from + nr_blocks;
	s.out = s.to + nr_blocks;
	s.in = s.out + nr_blocks;
	s.next_out = s.in + nr_blocks;
	s.next_in = s.next_out + nr_links;
	for (uint32_t l = 0; l < nr_links; l++) {
		struct me_improve_link *link = &links[l];

		s.next_out[l] = s.out[link->from];
		s.out[link->from] = l;
		s.next_in[l] = s.in[link->to];
		s.in[link->to] = l;
		/* A branch to the next instruction is two links of the same blocks: one of them is chosen. */
		link->chosen = link->chosen && s.from[link->from] == NONE;
		if (link->chosen)
			s.from[link->from] = s.to[link->to] = l;
	}
	search_all(&s, nr_links);
	free(all);
	return 0;
}
