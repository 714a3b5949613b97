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
	bool failed;	    /* out of memory */
};

static const struct me_moved_saves *moved_in(const struct maker *m, uint32_t block)
{
	uint32_t at = m->of_func[m->job->cfg->blocks[block].func];

	return at ? &m->moved->list[at - 1] : NULL;
}

/* Return: the early block that holds cfg block @block; NULL: it is not early. */
static const struct me_early_block *early_at(const struct me_moved_saves *moved, uint64_t vaddr)
{
	for (uint32_t i = 0; moved && i < moved->nr_early; i++)
		if (vaddr >= moved->early[i].vaddr && vaddr < moved->early[i].end)
			return &moved->early[i];
	return NULL;
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

			if (unsaved_at(moved, early, cfg->blocks[b].vaddr))
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

/*
 * Plans the blocks of one function from @i on. A second copy into which the block before falls has the same
 * registers saved as that block; else it is left out, with those that it falls into. Return: behind the last.
 */
static uint32_t put_group(struct maker *m, uint32_t i)
{
	const struct me_plan *plan = &m->job->plan;
	bool early_before = false, left_out = false;

	do {
		const struct me_plan_block *planned = &plan->blocks[i];
		const struct me_moved_saves *moved = moved_in(m, planned->block);
		const struct me_early_block *early = early_at(
			moved, m->job->cfg->blocks[planned->block].vaddr);

		left_out = planned->clone && (left_out || (early_before && !early));
		if (!left_out && early && (!planned->clone || early_before))
			put_early(m, moved, early, planned);
		else if (!left_out)
			put(m, planned);
		if (!planned->clone || left_out)
			early_before = early && !left_out;
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
	};
	bool ok = m.of_func && m.warm_done;

	for (uint32_t i = 0; ok && i < moved->nr; i++)
		m.of_func[moved->list[i].func] = i + 1;
	ok = ok && make(&m);
	free(m.of_func);
	free(m.warm_done);
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
