// SPDX-License-Identifier: Apache-2.0
/*
 * loop_points - chooses timing points.
 *
 * Loops are tried outermost first, depth first. In the paper, the first suitable loop ends the
 * search. Here the loops beside it get points of their own, too, and effects are weighted by the
 * time that they take. Up to three passes are made over the loops; the first pass that gives a
 * point is the last. The first pass takes loops that turn often enough and whose rounds are no
 * shorter than the least distance, the second also rarer loops, the third also tight loops, of
 * which several rounds are timed at once.
 */
#include "editor/instrument/loop_points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "editor/instrument/loop_distance.h"
#include "editor/base/loops.h"
#include "editor/instrument/versions.h"
#include "editor/unwind/unwind.h"
#include "libprof/base/grow.h"

/*
 * Instructions of the stub at a timing point, if nothing is to be done: decl, jns (audit_code.h).
 */
#define STUB_INSNS 2
/*
 * A loop with a smaller share of the function's instructions than this gets no timing point.
 * Assumption: what such a loop gains or loses changes the function's time by a tenth of that. With
 * a smaller share more loops have stubs; with a larger one more functions have no timing point.
 */
#define LEAST_SHARE 0.1
/*
 * A block of a loop counts as one that runs once a round if its count is within these factors of
 * the loop's first block. Assumption: the tenth is room for errors of inferred counts. With wider
 * limits a timing may have more or fewer rounds than intended, in both versions alike, since their
 * stubs stand before the same block. With narrower limits fewer blocks can be chosen.
 */
#define LEAST_TURNS 0.9
#define MOST_TURNS  1.1
/*
 * If no sample fell on the entry, a function is taken to be entered rarely if a loop of it has at
 * least this many rounds for each entry. Assumption: no experiment chose the number. A smaller
 * number gives points, and stubs that cost something, to functions whose entries suffice for
 * timings; a larger one gives no points to functions with few timings.
 */
#define LOOPY 100
/*
 * At most this many blocks of a loop are tried. Assumption: it only bounds the time of the choice,
 * one run of Dijkstra's algorithm for each block. The first block with the least distance ends the
 * search, so the limit matters only in loops whose first 64 candidates are all too close to
 * themselves or to other points; there a smaller limit may find no point.
 */
#define MOST_TRIES 64

enum pass {
	PASS_OFTEN,
	PASS_RARE,
	PASS_TIGHT,
	NR_PASSES
};

struct chooser {
	const struct mp_cfg *cfg;
	const struct me_flags *flags;
	const struct mp_counts *counts; /* NULL: no profile */
	double file_insns;
	/* of the current function */
	const struct mp_func *func;
	double insns;
	struct me_loops loops;
	struct me_distances distances;
	uint32_t *from[ME_AUDIT_MAX_POINTS + 1]; /* distances from each point, and from a block */
	struct me_loop_choice *choice;
	bool failed; /* out of memory */
};

static double count_of(const struct chooser *c, uint32_t block)
{
	return c->counts ? c->counts->block[block] : 1;
}

/*
 * May a stub that calls the runtime stand before the block, so that all control to the block passes
 * it? Out of memory, sets @failed.
 */
static bool may_stand(struct chooser *c, uint32_t b)
{
	const struct mp_block *block = &c->cfg->blocks[b];
	const uint16_t bad = MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_TABLE_TARGET |
			     MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_OTHER_ENTRY | MP_BLOCK_NAMED;
	const uint8_t *bytes = mp_elf_bytes(c->cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;
	int has_frame;

	if (block->flags & bad || me_block_stays(block) || me_versions_is_exit(block) ||
	    c->flags->live[b] || block->size == block->term_len || !bytes)
		return false;
	if (mp_insn_decode(bytes, block->size, block->vaddr, &insn) || insn.endbr64)
		return false;
	has_frame = me_unwind_has_frame(c->cfg, b);
	c->failed |= has_frame < 0;
	return has_frame > 0;
}

/* Does the block run once in each round of the loop, by the profile? */
static bool runs_each_round(const struct chooser *c, uint32_t loop, uint32_t block)
{
	double rounds = count_of(c, c->loops.list[loop].header), count = count_of(c, block);

	if (c->loops.of_block[block - c->func->first_block] != loop)
		return false;
	return count >= LEAST_TURNS * rounds && count <= MOST_TURNS * rounds && count > 0;
}

/* Least distance of the block to timing points of other loops, from the block and from them. */
static uint32_t to_other_points(const struct chooser *c, uint32_t block, const uint32_t *from)
{
	const struct me_loop_choice *choice = c->choice;
	uint32_t least = ME_LOOP_FAR, first = c->func->first_block;

	for (uint32_t i = 0; i < choice->nr_points; i++) {
		uint32_t there = from[choice->points[i].block - first];
		uint32_t back = c->from[i][block - first];

		least = there < least ? there : least;
		least = back < least ? back : least;
	}
	return least;
}

/* Instructions that the loop runs, by the profile. */
static double insns_of(const struct chooser *c, uint32_t loop)
{
	double insns = 0;

	for (uint32_t b = 0; c->counts && b < c->func->nr_blocks; b++) {
		uint32_t block = c->func->first_block + b;

		if (me_loops_holds(&c->loops, loop, c->loops.of_block[b]))
			insns += c->counts->block[block] * c->cfg->blocks[block].nr_insns;
	}
	return insns;
}

/*
 * Instructions of a round: by the profile, or else on the shortest way. A way that is shorter than
 * usual makes no short timing, since the runtime ends a timing by the clock.
 */
static double round_of(const struct chooser *c, uint32_t loop, const struct me_loop_point *point)
{
	double insns = point->passes > 0 ? insns_of(c, loop) / point->passes : 0;

	return insns > point->distance ? insns : point->distance;
}

/*
 * The paper tries the blocks of a loop in the order of their distance to the target frequency. All
 * blocks that run once a round have about the same distance, so here they are tried in the order of
 * addresses.
 */
static bool select_block(struct chooser *c, uint32_t loop, enum pass pass)
{
	struct me_loop_choice *choice = c->choice;
	uint32_t nr = choice->nr_points, first = c->func->first_block, tries = 0;
	struct me_loop_point best = {0};
	double insns;

	for (uint32_t b = first; b < first + c->func->nr_blocks && tries < MOST_TRIES; b++) {
		uint32_t self;

		if (!runs_each_round(c, loop, b) || !may_stand(c, b))
			continue;
		tries++;
		me_distances_from(&c->distances, b, c->from[nr]);
		self = c->from[nr][b - first];
		if (!self || self == ME_LOOP_FAR ||
		    to_other_points(c, b, c->from[nr]) < ME_LOOP_LEAST_DISTANCE)
			continue;
		if (self > best.distance)
			best = (struct me_loop_point){.block = b, .distance = self};
		if (self >= ME_LOOP_LEAST_DISTANCE)
			break;
	}
	if (!best.distance)
		return false;
	best.passes = count_of(c, best.block);
	insns = round_of(c, loop, &best);
	if (insns < ME_LOOP_LEAST_DISTANCE && pass != PASS_TIGHT)
		return false;
	best.rounds = 1 + (uint32_t)((ME_LOOP_LEAST_DISTANCE - 1) / insns);
	me_distances_from(&c->distances, best.block, c->from[nr]);
	choice->points[choice->nr_points++] = best;
	return true;
}

static bool is_worth(const struct chooser *c, uint32_t loop, enum pass pass)
{
	double rounds = count_of(c, c->loops.list[loop].header);

	if (!c->counts)
		return true;
	if (insns_of(c, loop) < LEAST_SHARE * c->insns)
		return false;
	return pass != PASS_OFTEN || rounds > ME_LOOP_TARGET * c->insns;
}

/* Outermost first, depth first. Return: true: the loop, or loops in it, have points. */
static bool try_loop(struct chooser *c, uint32_t loop, enum pass pass)
{
	uint32_t before = c->choice->nr_points;

	if (before == ME_AUDIT_MAX_POINTS)
		return false;
	if (is_worth(c, loop, pass) && select_block(c, loop, pass))
		return true;
	for (uint32_t i = loop + 1; i < c->loops.nr; i++)
		if (c->loops.list[i].parent == loop)
			try_loop(c, i, pass);
	return c->choice->nr_points > before;
}

/*
 * Sampled counts are too coarse for seconds: what runs a hundred times a second has no sample. A
 * function is then taken to be entered rarely if no sample saw it begin, and a loop of it has
 * LOOPY rounds an entry.
 */
static bool is_entered_rarely(const struct chooser *c)
{
	double entries = 0, rounds = 0;
	uint64_t samples = 0;

	if (!c->counts)
		return true;
	for (uint32_t b = c->func->first_block; b < c->func->first_block + c->func->nr_blocks;
	     b++) {
		if (!(c->cfg->blocks[b].flags & MP_BLOCK_ENTRY))
			continue;
		entries += c->counts->block[b];
		samples += c->counts->samples[b];
	}
	if (entries * ME_LOOP_INSNS_A_SECOND <= ME_LOOP_ENTRIES_A_SECOND * c->file_insns)
		return true;
	for (uint32_t i = 0; i < c->loops.nr; i++) {
		double count = count_of(c, c->loops.list[i].header);

		rounds = count > rounds ? count : rounds;
	}
	return !c->counts->exact && !samples && rounds >= LOOPY * entries;
}

static int choose_in(struct chooser *c, uint32_t func, const struct me_plan *plan)
{
	int rc;

	c->func = &c->cfg->funcs[func];
	c->insns = 0;
	for (uint32_t b = 0; b < c->func->nr_blocks; b++)
		c->insns += count_of(c, c->func->first_block + b) *
			    c->cfg->blocks[c->func->first_block + b].nr_insns;
	rc = me_loops_find(c->cfg, func, &c->loops);
	if (!rc && c->loops.nr && !is_entered_rarely(c)) {
		c->choice->why_none = "it is entered often enough";
		me_loops_fini(&c->loops);
		return 0;
	}
	if (!rc)
		rc = me_distances_init(&c->distances, c->cfg, func, plan);
	for (int i = 0; !rc && i <= ME_AUDIT_MAX_POINTS; i++) {
		c->from[i] = malloc(((size_t)c->func->nr_blocks * 2 + 1) * sizeof(*c->from[i]));
		rc = c->from[i] ? 0 : -ENOMEM;
	}
	for (int pass = 0; !rc && pass < NR_PASSES && !c->choice->nr_points; pass++)
		for (uint32_t i = 0; i < c->loops.nr; i++)
			if (c->loops.list[i].parent == MP_NONE)
				try_loop(c, i, (enum pass)pass);
	if (c->failed)
		rc = -ENOMEM;
	if (!rc && !c->choice->nr_points)
		c->choice->why_none = c->loops.nr ? "no block of its loops can be timed"
						  : "it has no loop";
	me_loops_fini(&c->loops);
	me_distances_fini(&c->distances);
	for (int i = 0; i <= ME_AUDIT_MAX_POINTS; i++) {
		free(c->from[i]);
		c->from[i] = NULL;
	}
	return rc;
}

struct priced {
	double cost;
	uint32_t choice;
};

static int compare(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->choice < y->choice ? -1 : 1;
}

/* The points that cost least are kept, as long as all of them cost little. */
static int keep_cheap(const struct chooser *c, bool any_cost, struct me_loop_points *out)
{
	struct priced *list = calloc((size_t)out->nr + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->nr; i++) {
		list[i].choice = i;
		for (uint32_t p = 0; c->file_insns > 0 && p < out->list[i].nr_points; p++)
			list[i].cost += STUB_INSNS * out->list[i].points[p].passes / c->file_insns;
	}
	qsort(list, out->nr, sizeof(*list), compare);
	for (uint32_t i = 0; i < out->nr; i++) {
		struct me_loop_choice *choice = &out->list[list[i].choice];

		if (!any_cost && out->cost + list[i].cost > ME_LOOP_COST) {
			choice->nr_points = 0;
			choice->why_none = "its loops are so tight that stubs would cost too much";
		}
		if (choice->nr_points)
			out->cost += list[i].cost;
		out->nr_points += choice->nr_points;
	}
	free(list);
	return 0;
}

int me_loop_points_choose(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *chosen,
			  const struct me_plan *plan, const struct mp_counts *counts, bool any_cost,
			  struct me_loop_points *out, struct mp_err *err)
{
	struct me_flags flags = {0};
	struct chooser c = {.cfg = cfg, .flags = &flags, .counts = counts};
	uint32_t cap = 0;
	int rc = me_flags_find(cfg, movable, true, &flags, err);

	*out = (struct me_loop_points){0};
	if (rc)
		return rc;
	for (uint32_t b = 0; counts && b < cfg->nr_blocks; b++)
		c.file_insns += counts->block[b] * cfg->blocks[b].nr_insns;
	for (uint32_t f = 0; !rc && f < cfg->nr_funcs; f++) {
		if (!chosen[f])
			continue;
		if (mp_grow(out->list, cap, out->nr + 1)) {
			rc = -ENOMEM;
			break;
		}
		c.choice = &out->list[out->nr++];
		*c.choice = (struct me_loop_choice){.func = f};
		rc = choose_in(&c, f, plan);
	}
	if (!rc)
		rc = keep_cheap(&c, any_cost, out);
	me_flags_fini(&flags);
	if (rc) {
		me_loop_points_fini(out);
		return mp_err_code(err, -rc);
	}
	return 0;
}

void me_loop_points_fini(struct me_loop_points *points)
{
	free(points->list);
	*points = (struct me_loop_points){0};
}

void me_loop_points_report(const struct mp_cfg *cfg, const struct me_loop_points *points,
			   struct me_loop_report *out)
{
	*out = (struct me_loop_report){.nr_points = points->nr_points, .cost = points->cost};
	for (uint32_t i = 0; i < points->nr; i++) {
		const struct me_loop_choice *choice = &points->list[i];
		const struct mp_func *func = &cfg->funcs[choice->func];
		struct me_loop_reported *to = &out->list[out->nr_listed];

		out->nr_funcs += choice->nr_points != 0;
		if (out->nr_listed == ME_LOOP_REPORT_FUNCS)
			continue;
		out->nr_listed++;
		snprintf(to->name, sizeof(to->name), "%s", func->name);
		to->vaddr = func->vaddr;
		to->nr_points = choice->nr_points;
		to->why_none = choice->why_none;
		for (uint32_t p = 0; p < choice->nr_points; p++) {
			to->points[p].vaddr = cfg->blocks[choice->points[p].block].vaddr;
			to->points[p].rounds = choice->points[p].rounds;
			to->points[p].distance = choice->points[p].distance;
		}
	}
}
