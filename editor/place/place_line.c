// SPDX-License-Identifier: Apache-2.0
/*
 * place_line - where copies begin, so that hot loops and runs lie in few lines. Called by place.
 *
 * What control falls through in sequence moves as a whole. So the bytes before the first of these
 * copies decide where in a line each loop among them lies.
 */
#include "editor/place/place_private.h"

/* Only this much of a longer run is kept together. */
#define MAX_RUN_LINES 2
/* A sequence may have more runs and loops. Only the first of them, as many as this, decide its place. */
#define MAX_SPANS 64
/*
 * Loops that begin more than so many copies behind do not decide it either: otherwise a plan that wants a place for each copy would take
 * a time that grows with the square of their number.
 */
#define MAX_COPIES 1024

/* Code that executes as a whole. */
struct span {
	uint64_t off, size; /* from the start of the sequence */
	double count;
};

struct spans {
	struct span list[MAX_SPANS];
	uint32_t nr;
};

static void add_span(const struct me_placement *placement, uint32_t i, uint32_t nr_copies,
		     uint64_t off, double count, struct spans *spans)
{
	uint64_t size = 0;

	if (!nr_copies || spans->nr == MAX_SPANS)
		return;
	for (uint32_t k = i; k < i + nr_copies && k < placement->nr_copies; k++)
		size += me_copy_size(&placement->copies[k]);
	if (size)
		spans->list[spans->nr++] = (struct span){off, size, count};
}

/* How often lines are fetched that a better place would save, if the sequence began at @vaddr. */
static double cost(const struct spans *spans, uint64_t vaddr, uint64_t line)
{
	double sum = 0;

	for (uint32_t i = 0; i < spans->nr; i++) {
		const struct span *s = &spans->list[i];

		uint64_t lines = (s->size + line - 1) / line;

		if (((vaddr + s->off) & (line - 1)) + s->size > lines * line)
			sum += s->count;
	}
	return sum;
}

uint64_t me_place_in_lines(const struct me_placement *placement,
			   const struct me_plan_block *planned, uint32_t i, uint64_t vaddr)
{
	uint64_t line = UINT64_C(1) << placement->line_log2, off = 0, best = vaddr;
	uint64_t step = UINT64_C(1) << placement->copies[i].align_log2;
	struct spans spans;
	double least;

	if (step >= line)
		return vaddr;
	spans.nr = 0; /* the list is long: it is not cleared for each copy */
	if (i && placement->copies[i - 1].falls && !planned[i].run) {
		/* Padding here executes, so only the loop that begins here matters. */
		add_span(placement, i, planned[i].pad ? planned[i].loop : 0, 0, planned[i].heat,
			 &spans);
		return cost(&spans, vaddr, line) > 0 ? me_round_up(vaddr, placement->line_log2)
						     : vaddr;
	}
	add_span(placement, i, planned[i].run, 0, planned[i].heat, &spans);
	if (spans.nr && spans.list[0].size > MAX_RUN_LINES * line)
		spans.list[0].size = MAX_RUN_LINES * line;
	for (uint32_t k = i; k < placement->nr_copies && k - i < MAX_COPIES; k++) {
		const struct me_copy *copy = &placement->copies[k];

		if (k > i && (copy->align_log2 || copy->new_line))
			break;
		add_span(placement, k, planned[k].loop, off, planned[k].heat, &spans);
		off += me_copy_size(copy);
		if (!copy->falls)
			break;
	}
	least = cost(&spans, vaddr, line);
	for (uint64_t at = vaddr + step; at < vaddr + line && least > 0; at += step) {
		double here = cost(&spans, at, line);

		if (here < least) {
			least = here;
			best = at;
		}
	}
	return best;
}
