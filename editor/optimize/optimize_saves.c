// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_saves - changes the plan so that hot copies save registers only where these are needed
 * (shrink-wrapping). optimize_saves_choose.c chooses; verify_saves.c proves the result. The layout is decided
 * before, so it does not depend on this. Called by optimize.c.
 *
 * The early copy of a block, in which registers are not saved, takes the place of its only copy so far. Ways to
 * other blocks lead through code that saves them. If other copies lead to the block as well, it gets a second copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/evidence/leaf.h"
#include "editor/optimize/optimize_saves_private.h"

/* The new plan, while it is made. */
struct maker {
	struct me_job *job;
	const struct me_moved_saves_list *moved;
	uint32_t *of_func; /* per function: 1 + index in @moved; 0: nothing changes there */
	struct me_plan_block *blocks;
	uint32_t nr, cap;
	struct me_unsaved *unsaved;
	uint32_t nr_unsaved, cap_unsaved;
	uint8_t *warm_done; /* per entry of @moved: its warm additions are planned */
	uint8_t *becomes;   /* per block of the old plan: enum becomes */
	uint8_t *reached;   /* per cfg block: control comes to its early copy */
	bool failed;	    /* out of memory */
};

/* What a planned block becomes. */
enum becomes {
	SAVED, /* a copy that saves all that the original does */
	EARLY,
	LEFT_OUT,
};

static const struct me_moved_saves *moved_in(const struct maker *m, uint32_t block)
{
	uint32_t at = m->of_func[m->job->cfg->blocks[block].func];

	return at ? &m->moved->list[at - 1] : NULL;
}

/* Return: the early block that holds cfg block @block; NULL: it is not early. */
static const struct me_early_block *early_at(const struct me_moved_saves *moved, uint64_t vaddr)
{
	uint32_t lo = 0, hi = moved ? moved->nr_early : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (moved->early[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return moved && lo < moved->nr_early && moved->early[lo].vaddr <= vaddr ? &moved->early[lo]
										: NULL;
}

static const struct me_step *step_at(const struct me_moved_saves *moved, uint64_t vaddr)
{
	for (uint32_t i = 0; i < moved->nr_steps; i++)
		if (moved->steps[i].vaddr == vaddr)
			return &moved->steps[i];
	return NULL;
}

/* Registers that are not saved at @vaddr, in the early copy of @early. */
static uint8_t unsaved_at(const struct me_moved_saves *moved, const struct me_early_block *early,
			  uint64_t vaddr)
{
	uint8_t set = early->before;

	for (uint32_t i = 0; i < moved->nr_steps; i++)
		if (moved->steps[i].vaddr >= early->vaddr && moved->steps[i].vaddr < vaddr)
			set |= moved->steps[i].saves;
	return set;
}

static void put(struct maker *m, const struct me_plan_block *planned)
{
	if (me_grow(&m->blocks, &m->cap, m->nr + 1, sizeof(*m->blocks)))
		m->blocks[m->nr++] = *planned;
	else
		m->failed = true;
}

static void put_unsaved(struct maker *m, struct me_plan_block planned, struct me_unsaved unsaved)
{
	if (!me_grow(&m->unsaved, &m->cap_unsaved, m->nr_unsaved + 1, sizeof(*m->unsaved))) {
		m->failed = true;
		return;
	}
	unsaved.planned = m->nr;
	m->unsaved[m->nr_unsaved++] = unsaved;
	planned.unsaved = m->nr_unsaved;
	put(m, &planned);
}

static void put_early(struct maker *m, const struct me_moved_saves *moved,
		      const struct me_early_block *early, const struct me_plan_block *planned)
{
	const struct mp_block *block = &m->job->cfg->blocks[planned->block];
	const struct me_step *step = step_at(moved, block->vaddr);
	struct me_unsaved unsaved = {
		.before = unsaved_at(moved, early, block->vaddr),
		.behind = unsaved_at(moved, early, block->vaddr + block->size),
	};
	struct me_plan_block copy = *planned;

	unsaved.second = planned->clone;
	if (step) {
		unsaved.steps = true;
		unsaved.adjust = step->adjust;
	}
	copy.clone |= unsaved.before != 0;
	put_unsaved(m, copy, unsaved);
}

/* Plans the second copies of early blocks for which @wanted was chosen. */
static void put_saved_copies(struct maker *m, const struct me_moved_saves *moved, uint8_t wanted)
{
	const struct mp_cfg *cfg = m->job->cfg;

	for (uint32_t i = 0; i < moved->nr_early; i++) {
		const struct me_early_block *early = &moved->early[i];
		uint32_t b = mp_cfg_block_starting(cfg, early->vaddr);

		if (early->saved != wanted)
			continue;
		for (; b < cfg->nr_blocks && cfg->blocks[b].vaddr < early->end &&
		       cfg->blocks[b].func == moved->func;
		     b++) {
			struct me_plan_block copy = {
				.block = b,
				.zone = wanted == ME_SAVED_HOT ? ME_ZONE_HOT : ME_ZONE_WARM,
				.why = ME_WHY_FLOW,
			};

			/* If nothing reaches an early copy, the saved one is in its place. */
			if (unsaved_at(moved, early, cfg->blocks[b].vaddr) && m->reached[b])
				put(m, &copy);
		}
	}
}

/* Plans what a function needs in the warm zone: code that saves registers, and second copies. */
static void put_warm(struct maker *m, uint32_t index)
{
	const struct me_moved_saves *moved = &m->moved->list[index];

	if (m->warm_done[index])
		return;
	m->warm_done[index] = 1;
	for (uint32_t i = 0; i < moved->nr_late; i++) {
		const struct me_late_block *late = &moved->late[i];
		struct me_unsaved unsaved = {.before = late->unsaved, .saves = true};
		struct me_plan_block code = {
			.block = mp_cfg_block_starting(m->job->cfg, late->vaddr),
			.zone = ME_ZONE_WARM,
			.why = ME_WHY_FLOW,
			.clone = true,
		};

		if (!m->reached[code.block])
			continue;
		/* The CFA is a return address above the stack pointer's value at the entry. */
		for (int k = 0; k < ME_NR_CALLEE_SAVED; k++)
			unsaved.at[k] = late->depth + 8 - moved->place[k];
		put_unsaved(m, code, unsaved);
	}
	put_saved_copies(m, moved, ME_SAVED_WARM);
}

static uint32_t func_at(const struct maker *m, uint32_t i)
{
	return m->job->cfg->blocks[m->job->plan.blocks[i].block].func;
}

/* Does planned block @i begin the blocks of another function, or zone, or those that lie apart? */
static bool begins_group(const struct maker *m, uint32_t i)
{
	const struct me_plan_block *p = m->job->plan.blocks;

	return !i || p[i].apart != p[i - 1].apart || p[i].zone != p[i - 1].zone ||
	       func_at(m, i) != func_at(m, i - 1);
}

/* Plans what functions before @func need in the warm zone, if they have no other blocks there. */
static void put_warm_before(struct maker *m, uint32_t *next, uint32_t func, const uint8_t *has_warm)
{
	for (; *next < m->moved->nr && m->moved->list[*next].func < func; ++*next)
		if (!has_warm[*next])
			put_warm(m, *next);
}

static const struct me_early_block *early_of(const struct maker *m, uint32_t i)
{
	uint32_t block = m->job->plan.blocks[i].block;

	return early_at(moved_in(m, block), m->job->cfg->blocks[block].vaddr);
}

/* Does a part of the code in place of the call at the end of planned block @i lie apart? */
static bool is_divided(const struct me_plan *plan, uint32_t i)
{
	const struct me_plan_block *planned = &plan->blocks[i];

	return planned->inlined && !planned->apart && plan->leaves[planned->inlined - 1].apart_size;
}

/*
 * Decides what each planned block becomes. A second copy into which the block before falls has the same registers
 * saved as that block; else it is left out, with those that it falls into.
 */
static void decide(struct maker *m)
{
	const struct me_plan *plan = &m->job->plan;
	enum becomes before = SAVED;
	uint32_t near = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];
		const struct me_early_block *early = early_of(m, i);
		enum becomes *at = &before;

		/* What lies apart is in the order of what it belongs to. */
		if (planned->apart) {
			while (!is_divided(plan, near))
				near++;
			m->becomes[i] = m->becomes[near++];
			continue;
		}
		if (begins_group(m, i))
			before = SAVED;
		if (!planned->clone)
			*at = !early			      ? SAVED
			      : m->reached[planned->block]    ? EARLY
			      : early->saved == ME_SAVED_NONE ? LEFT_OUT
							      : SAVED;
		else if (before == EARLY && !early)
			*at = LEFT_OUT;
		m->becomes[i] = (uint8_t)*at;
	}
}

/* For find_reached(). */
struct ways {
	uint32_t *early; /* per cfg block: the planned block that is its early copy, but a second one; MP_NONE */
	uint8_t *seen; /* per planned block */
	uint8_t *reached; /* per cfg block: early copies lead to it, other than by running on into a second copy */
	uint32_t *todo, nr; /* planned blocks */
};

static void visit(struct ways *w, uint32_t i)
{
	if (i != MP_NONE && !w->seen[i]) {
		w->seen[i] = 1;
		w->todo[w->nr++] = i;
	}
}

/* Follows the ways out of an early copy. */
static void follow(const struct maker *m, struct ways *w, uint32_t i)
{
	const struct mp_cfg *cfg = m->job->cfg;
	const struct me_plan_block *planned = m->job->plan.blocks;
	const struct mp_block *block = &cfg->blocks[planned[i].block];
	const struct me_moved_saves *moved = moved_in(m, planned[i].block);
	uint64_t end = block->vaddr + block->size;
	bool unsaved = unsaved_at(moved, early_of(m, i), end) != 0;
	bool own = i + 1 < m->job->plan.nr_blocks && planned[i + 1].clone &&
		   m->becomes[i + 1] == EARLY && !begins_group(m, i + 1);

	for (uint32_t e = 0; e < block->nr_edges; e++) {
		uint32_t to = cfg->edges[block->first_edge + e].to;

		/* A branch may lead there as well. */
		if (own && planned[i + 1].block == to) {
			visit(w, i + 1);
			own = false;
			continue;
		}
		visit(w, w->early[to]);
		if (unsaved || early_at(moved, cfg->blocks[to].vaddr))
			w->reached[to] = 1;
	}
}

/* Follows all ways from the entries. */
static void find_reached(const struct maker *m, struct ways *w)
{
	const struct mp_cfg *cfg = m->job->cfg;
	const struct me_plan *plan = &m->job->plan;

	memset(w->early, 0xff, cfg->nr_blocks * sizeof(*w->early));
	memset(w->seen, 0, plan->nr_blocks);
	memset(w->reached, 0, cfg->nr_blocks);
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (m->becomes[i] == EARLY && !plan->blocks[i].clone)
			w->early[plan->blocks[i].block] = i;
	for (uint32_t i = 0; i < m->moved->nr; i++) {
		uint32_t entry =
			mp_cfg_block_starting(cfg, cfg->funcs[m->moved->list[i].func].vaddr);

		w->reached[entry] = 1;
		visit(w, w->early[entry]);
	}
	while (w->nr)
		follow(m, w, w->todo[--w->nr]);
}

/* Decides until the early copies are those that are reached. Return: false: out of memory. */
static bool decide_all(struct maker *m)
{
	size_t nr = m->job->cfg->nr_blocks, nr_planned = m->job->plan.nr_blocks;
	struct ways w = {
		.early = malloc((nr + 1) * sizeof(*w.early)),
		.seen = malloc(nr_planned + 1),
		.reached = malloc(nr + 1),
		.todo = malloc((nr_planned + 1) * sizeof(*w.todo)),
	};
	bool ok = w.early && w.seen && w.reached && w.todo, more = true;

	memset(m->reached, 1, nr);
	while (ok && more) {
		decide(m);
		find_reached(m, &w);
		more = false;
		for (size_t b = 0; b < nr; b++) {
			more |= m->reached[b] && !w.reached[b];
			m->reached[b] &= w.reached[b];
		}
	}
	free(w.early);
	free(w.seen);
	free(w.reached);
	free(w.todo);
	return ok;
}

/* Plans the blocks of one function from @i on. Return: behind the last. */
static uint32_t put_group(struct maker *m, uint32_t i)
{
	const struct me_plan *plan = &m->job->plan;

	do {
		const struct me_plan_block *planned = &plan->blocks[i];

		if (m->becomes[i] == EARLY)
			put_early(m, moved_in(m, planned->block), early_of(m, i), planned);
		else if (m->becomes[i] == SAVED)
			put(m, planned);
		i++;
	} while (i < plan->nr_blocks && !begins_group(m, i));
	return i;
}

/* Makes the new plan. Needs the cut blocks. Return: false: out of memory. */
static bool make(struct maker *m)
{
	const struct me_plan *plan = &m->job->plan;
	uint8_t *has_warm = calloc((size_t)m->moved->nr + 1, 1);
	uint32_t next = 0, i = 0;

	for (uint32_t k = 0; has_warm && k < plan->nr_blocks; k++)
		if (plan->blocks[k].zone == ME_ZONE_WARM && !plan->blocks[k].apart &&
		    m->of_func[func_at(m, k)])
			has_warm[m->of_func[func_at(m, k)] - 1] = 1;
	while (has_warm && i < plan->nr_blocks) {
		const struct me_plan_block *planned = &plan->blocks[i];
		uint32_t at = m->of_func[func_at(m, i)];

		if (planned->zone == ME_ZONE_WARM)
			put_warm_before(m, &next, planned->apart ? UINT32_MAX : func_at(m, i),
					has_warm);
		i = put_group(m, i);
		if (at && planned->zone == ME_ZONE_HOT)
			put_saved_copies(m, &m->moved->list[at - 1], ME_SAVED_HOT);
		else if (at && !planned->apart)
			put_warm(m, at - 1);
	}
	if (has_warm)
		put_warm_before(m, &next, UINT32_MAX, has_warm);
	free(has_warm);
	return has_warm && !m->failed;
}

static int make_plan(struct me_job *job, const struct me_moved_saves_list *moved)
{
	struct maker m = {
		.job = job,
		.moved = moved,
		.of_func = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*m.of_func)),
		.warm_done = calloc((size_t)moved->nr + 1, 1),
		.becomes = calloc((size_t)job->plan.nr_blocks + 1, 1),
		.reached = calloc((size_t)job->cfg->nr_blocks + 1, 1),
	};
	bool ok = m.of_func && m.warm_done && m.becomes && m.reached;

	for (uint32_t i = 0; ok && i < moved->nr; i++)
		m.of_func[moved->list[i].func] = i + 1;
	ok = ok && decide_all(&m) && make(&m);
	free(m.of_func);
	free(m.warm_done);
	free(m.becomes);
	free(m.reached);
	if (!ok) {
		free(m.blocks);
		free(m.unsaved);
		return -ENOMEM;
	}
	free(job->plan.blocks);
	job->plan.blocks = m.blocks;
	job->plan.nr_blocks = m.nr;
	job->plan.unsaved = m.unsaved;
	job->plan.nr_unsaved = m.nr_unsaved;
	return 0;
}

/* Cuts blocks around the instructions for which steps stand. */
static int cut(struct me_job *job, const struct me_moved_saves_list *moved, struct mp_err *err)
{
	uint64_t *cuts = NULL;
	uint32_t nr = 0, cap = 0;
	int rc;

	for (uint32_t i = 0; i < moved->nr; i++) {
		const struct me_moved_saves *m = &moved->list[i];

		for (uint32_t k = 0; k < 2 * m->nr_steps; k++) {
			uint64_t at = k % 2 ? m->steps[k / 2].end : m->steps[k / 2].vaddr;

			if (mp_cfg_block_starting(job->cfg, at) != MP_NONE)
				continue;
			if (!me_grow(&cuts, &cap, nr + 1, sizeof(*cuts))) {
				free(cuts);
				return mp_err_set(err, ENOMEM, "out of memory");
			}
			cuts[nr++] = at;
		}
	}
	rc = nr ? me_job_cut_blocks(job, cuts, nr, err) : 0;
	free(cuts);
	return rc;
}

int me_job_move_saves(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct me_moved_saves_list moved = {0};
	int rc;

	if ((!o->stress_saves && (!o->layout.saves || !job->counts.block)) ||
	    me_counting_any(&o->counting) || job->added.nr_stubs)
		return 0;
	rc = me_moved_saves_choose(job, &moved);
	if (rc)
		rc = mp_err_set(err, -rc, "out of memory");
	if (!rc && moved.nr)
		rc = cut(job, &moved, err);
	if (!rc && moved.nr && make_plan(job, &moved))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	me_moved_saves_fini(&moved);
	return rc;
}
