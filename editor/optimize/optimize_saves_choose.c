// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_saves_choose - which functions save which registers later than in the original, by counts.
 *
 * For a set of registers, the blocks that can run before the set is saved, early blocks, are those that control
 * reaches from the entry over early blocks alone, and that change none of the registers. Instructions are gained
 * where saves and restores become one step of the stack pointer; saves on the ways from early blocks to others
 * cost some. All sets are tried.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/base/mix.h"
#include "editor/optimize/optimize_saves_private.h"

/* A set is worth another layout only if it gains so many instructions for each call of the function... */
#define GAIN_PER_CALL 0.3
/* ...and this part of all that the program executes. */
#define GAIN_SHARE 0.00001
/* The saved copy of an early block is hot if it runs so often, as a part of the function's calls. */
#define SAVED_IS_HOT (1.0 / 64)
/* What a jump to code in another zone costs, in instructions. */
#define FAR_JUMP 3
/* Rounds in which the flow that arrives with saved registers spreads. */
#define ROUNDS 16

/* How the copies of one function's blocks would be, for one set of registers. */
struct region {
	uint8_t *early;	   /* per block of the function */
	uint8_t *before;   /* registers of the set that are not saved at its start */
	uint8_t *restored; /* of these, those that were given back already */
	double *saved;	   /* executions of an early block that arrive with all registers saved */
	uint32_t *todo;
};

struct chooser {
	const struct me_job *job;
	struct me_kept_registers *kept;
	uint8_t *usable; /* per block: it has one ordinary copy, which may be an early one */
	double nr_insns; /* executed */
	struct region region;
	struct me_save_facts facts;
	uint32_t func, entry; /* @entry: of the function's blocks */
};

static bool is_stress(const struct chooser *c)
{
	return c->job->options->stress_saves;
}

static uint64_t dice(const struct chooser *c, uint64_t at, uint64_t sides)
{
	return me_mix(c->job->options->stress_saves_seed * UINT64_C(0x9e3779b97f4a7c15) + at) %
	       sides;
}

static bool chooser_init(struct chooser *c, const struct me_job *job)
{
	const struct mp_cfg *cfg = job->cfg;
	uint32_t most = 1;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		most = cfg->funcs[f].nr_blocks > most ? cfg->funcs[f].nr_blocks : most;
	*c = (struct chooser){
		.job = job,
		.kept = me_kept_registers_new(cfg),
		.usable = calloc((size_t)cfg->nr_blocks + 1, 1),
		.region = {calloc(most, 1), calloc(most, 1), calloc(most, 1),
			   calloc(most, sizeof(double)), calloc(most, sizeof(uint32_t))},
	};
	if (!c->kept || !c->usable || !c->region.early || !c->region.before ||
	    !c->region.restored || !c->region.saved || !c->region.todo)
		return false;
	for (uint32_t i = 0; i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *p = &job->plan.blocks[i];

		if (!p->clone && !p->stub && !p->left_out && !p->inlined && !p->apart &&
		    p->version == ME_VERSION_NEW && (p->zone == ME_ZONE_HOT || is_stress(c)))
			c->usable[p->block] = 1;
	}
	/* No copy of an early block has code in place of a call. */
	for (uint32_t i = 0; i < job->plan.nr_blocks; i++)
		if (job->plan.blocks[i].inlined || job->plan.blocks[i].left_out)
			c->usable[job->plan.blocks[i].block] = 0;
	for (uint32_t b = 0; job->counts.block && b < cfg->nr_blocks; b++)
		c->nr_insns += job->counts.block[b] * cfg->blocks[b].nr_insns;
	return true;
}

static void chooser_fini(struct chooser *c)
{
	me_kept_registers_free(c->kept);
	free(c->usable);
	free(c->region.early);
	free(c->region.before);
	free(c->region.restored);
	free(c->region.saved);
	free(c->region.todo);
}

static const struct mp_func *func_of(const struct chooser *c)
{
	return &c->job->cfg->funcs[c->func];
}

static const struct mp_block *block_of(const struct chooser *c, uint32_t b)
{
	return &c->job->cfg->blocks[func_of(c)->first_block + b];
}

static const struct mp_edge *edge_of(const struct chooser *c, const struct mp_block *block,
				     uint32_t e)
{
	return &c->job->cfg->edges[block->first_edge + e];
}

/* The block, in this function, at the end of @edge. */
static uint32_t end_of(const struct chooser *c, const struct mp_edge *edge)
{
	return edge->to - func_of(c)->first_block;
}

/* Can block @b run before registers @set are saved? */
static bool may_be_early(const struct chooser *c, uint32_t b, uint8_t set)
{
	const struct mp_block *block = block_of(c, b);
	const struct me_save_block *facts = &c->facts.blocks[b];
	const unsigned int others = MP_BLOCK_LANDING_PAD | MP_BLOCK_TABLE_TARGET |
				    MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_OTHER_ENTRY | MP_BLOCK_NAMED |
				    MP_BLOCK_STAYS | MP_BLOCK_COLD_PART;

	if (block->flags & MP_BLOCK_ENTRY)
		return c->usable[func_of(c)->first_block + b] && facts->plain &&
		       !(facts->writes & set);
	return c->usable[func_of(c)->first_block + b] && facts->plain && !(facts->writes & set) &&
	       !(block->flags & others) && !(is_stress(c) && dice(c, ~block->vaddr, 4) == 0);
}

/* What block @b does with registers of @set. Return: false: it saves or restores one out of turn. */
static bool pass(const struct chooser *c, uint32_t b, uint8_t set, uint8_t *unsaved,
		 uint8_t *restored)
{
	const struct me_save_block *facts = &c->facts.blocks[b];

	*unsaved = c->region.before[b];
	*restored = c->region.restored[b];
	for (uint32_t i = 0; i < facts->nr_insns; i++) {
		const struct me_save_insn *insn = &c->facts.insns[facts->first_insn + i];
		uint8_t saves = insn->saves >= 0 ? (uint8_t)(set & 1u << insn->saves) : 0;
		uint8_t gives = insn->restores >= 0 ? (uint8_t)(set & 1u << insn->restores) : 0;

		if (saves & *unsaved || gives & ~*unsaved || gives & *restored)
			return false;
		*unsaved |= saves;
		*restored |= gives;
	}
	return true;
}

/* Finds the early blocks. Return: false: @set is not possible. */
static bool find_early(struct chooser *c, uint8_t set)
{
	struct region *r = &c->region;
	uint32_t nr = 0, nr_blocks = func_of(c)->nr_blocks;

	memset(r->early, 0, nr_blocks);
	if (!may_be_early(c, c->entry, set))
		return false;
	r->early[c->entry] = 1;
	r->before[c->entry] = r->restored[c->entry] = 0;
	r->todo[nr++] = c->entry;
	while (nr) {
		uint32_t b = r->todo[--nr];
		const struct mp_block *block = block_of(c, b);
		uint8_t unsaved, restored;

		if (!pass(c, b, set, &unsaved, &restored))
			return false;
		for (uint32_t e = 0; e < block->nr_edges; e++) {
			uint32_t to = end_of(c, edge_of(c, block, e));

			if (c->facts.blocks[to].depth_in >= 0 &&
			    c->facts.blocks[to].depth_in != c->facts.blocks[b].depth_out)
				return false;
			if (!may_be_early(c, to, set)) {
				if (unsaved & restored)
					return false;
				continue;
			}
			if (r->early[to]) {
				if (r->before[to] != unsaved || r->restored[to] != restored)
					return false;
				continue;
			}
			r->early[to] = 1;
			r->before[to] = unsaved;
			r->restored[to] = restored;
			r->todo[nr++] = to;
		}
	}
	return true;
}

/* How often control goes over edge @e of @block, of its executions. */
static double share_of(const struct chooser *c, const struct mp_block *block, uint32_t e)
{
	const struct mp_counts *counts = &c->job->counts;
	double all = counts->block[block - c->job->cfg->blocks];

	return all > 0 ? counts->edge[block->first_edge + e] / all : 0;
}

/* Spreads executions that come from other blocks than early ones over the early ones. */
static void spread_saved(struct chooser *c)
{
	const struct mp_func *f = func_of(c);
	const double *count = c->job->counts.block + f->first_block;
	struct region *r = &c->region;
	double *next = calloc(f->nr_blocks, sizeof(*next));

	memset(r->saved, 0, f->nr_blocks * sizeof(*r->saved));
	for (int round = 0; next && round < ROUNDS; round++) {
		memset(next, 0, f->nr_blocks * sizeof(*next));
		for (uint32_t b = 0; b < f->nr_blocks; b++) {
			const struct mp_block *block = block_of(c, b);
			double arrives = r->early[b] ? r->saved[b] : count[b];

			for (uint32_t e = 0; arrives > 0 && e < block->nr_edges; e++) {
				uint32_t to = end_of(c, edge_of(c, block, e));

				if (r->early[to])
					next[to] += arrives * share_of(c, block, e);
			}
		}
		for (uint32_t b = 0; b < f->nr_blocks; b++)
			r->saved[b] = next[b] < count[b] ? next[b] : count[b];
	}
	free(next);
}

/* The next run of instructions of block @b, from *@i on, for which one step can stand. Return: their number; 0: none. */
static uint32_t next_step(const struct chooser *c, uint32_t b, uint8_t set, uint32_t *i,
			  struct me_step *step)
{
	const struct me_save_block *facts = &c->facts.blocks[b];
	const struct me_save_insn *insns = &c->facts.insns[facts->first_insn];

	for (; *i < facts->nr_insns; ++*i) {
		bool wanted = false;
		uint32_t n = 0;

		*step = (struct me_step){insns[*i].vaddr, insns[*i].vaddr, 0, 0};
		for (; *i + n < facts->nr_insns && insns[*i + n].vaddr == step->end; n++) {
			const struct me_save_insn *insn = &insns[*i + n];
			int reg = insn->saves >= 0 ? insn->saves : insn->restores;

			if (reg >= 0 ? !(set >> reg & 1) : insn->flags_used)
				break;
			wanted |= reg >= 0;
			step->end += insn->len;
			step->adjust += insn->raises;
			if (insn->saves >= 0)
				step->saves |= (uint8_t)(1u << insn->saves);
		}
		if (wanted)
			return n;
	}
	return 0;
}

/* Instructions that are not executed in one run through block @b. */
static uint32_t gain_of(const struct chooser *c, uint32_t b, uint8_t set)
{
	struct me_step step;
	uint32_t gain = 0, n;

	for (uint32_t i = 0; (n = next_step(c, b, set, &i, &step)) > 0; i += n)
		gain += n - 1;
	return gain;
}

/* Instructions that are gained in all. Needs the early blocks. */
static double gain_of_all(struct chooser *c, uint8_t set)
{
	const struct mp_func *f = func_of(c);
	const double *count = c->job->counts.block + f->first_block;
	struct region *r = &c->region;
	double gain = 0;

	spread_saved(c);
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		const struct mp_block *block = block_of(c, b);
		double runs = count[b] - r->saved[b];
		uint8_t unsaved, restored;

		if (!r->early[b])
			continue;
		pass(c, b, set, &unsaved, &restored);
		gain += runs * gain_of(c, b, set);
		for (uint32_t e = 0; unsaved && e < block->nr_edges; e++)
			if (!r->early[end_of(c, edge_of(c, block, e))])
				gain -= runs * share_of(c, block, e) *
					(__builtin_popcount(unsaved) + FAR_JUMP);
	}
	return gain;
}

/* Return: the set that gains most; 0: none is worth it. */
static uint8_t best_set(struct chooser *c)
{
	double calls = is_stress(c) ? 0 : c->job->counts.block[func_of(c)->first_block + c->entry];
	double best = GAIN_PER_CALL * calls;
	uint8_t all = c->facts.saved, best_set = 0;

	if (is_stress(c)) {
		all &= (uint8_t)dice(c, func_of(c)->vaddr, 64);
		return all && find_early(c, all) ? all : 0;
	}
	if (best < GAIN_SHARE * c->nr_insns)
		best = GAIN_SHARE * c->nr_insns;
	for (uint8_t set = all; set; set = (uint8_t)((set - 1) & all)) {
		double gain = find_early(c, set) ? gain_of_all(c, set) : 0;

		if (gain > best) {
			best = gain;
			best_set = set;
		}
	}
	if (best_set) {
		find_early(c, best_set);
		spread_saved(c);
	}
	return best_set;
}

static bool add_late(const struct chooser *c, struct me_moved_saves *m, uint32_t to,
		     uint8_t unsaved, int32_t depth)
{
	uint64_t vaddr = block_of(c, to)->vaddr;

	for (uint32_t i = 0; i < m->nr_late; i++)
		if (m->late[i].vaddr == vaddr)
			return m->late[i].unsaved == unsaved && m->late[i].depth == depth;
	if (!me_grow(&m->late, &m->cap_late, m->nr_late + 1, sizeof(*m->late)))
		return false;
	m->late[m->nr_late++] = (struct me_late_block){vaddr, unsaved, depth};
	return true;
}

/* Does a copy lead to block @b with all registers saved? Then the block has a saved copy as well. */
static uint8_t saved_copy(const struct chooser *c, uint32_t b)
{
	if (is_stress(c))
		return dice(c, block_of(c, b)->vaddr + 1, 2) ? ME_SAVED_HOT : ME_SAVED_WARM;
	return c->region.saved[b] > SAVED_IS_HOT *
					    c->job->counts.block[func_of(c)->first_block + c->entry]
		       ? ME_SAVED_HOT
		       : ME_SAVED_WARM;
}

/* Which early blocks also need a saved copy: those to which others lead, and what follows them. */
static void find_saved_copies(struct chooser *c, uint8_t *needs)
{
	const struct mp_func *f = func_of(c);
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t b = 0; b < f->nr_blocks; b++) {
			const struct mp_block *block = block_of(c, b);

			if (c->region.early[b] && !needs[b])
				continue;
			for (uint32_t e = 0; e < block->nr_edges; e++) {
				uint32_t to = end_of(c, edge_of(c, block, e));

				if (c->region.early[to] && c->region.before[to] && !needs[to])
					needs[to] = more = true;
			}
		}
	}
}

/* Notes what changes. Return: false: out of memory, or not possible after all. */
static bool note(struct chooser *c, uint8_t set, struct me_moved_saves *m)
{
	const struct mp_func *f = func_of(c);
	uint8_t *needs = calloc(f->nr_blocks, 1);
	bool ok = needs;

	*m = (struct me_moved_saves){.func = c->func, .set = set};
	memcpy(m->place, c->facts.place, sizeof(m->place));
	if (ok)
		find_saved_copies(c, needs);
	for (uint32_t b = 0; ok && b < f->nr_blocks; b++) {
		const struct mp_block *block = block_of(c, b);
		uint8_t unsaved, restored;
		struct me_step step;
		uint32_t n;

		if (!c->region.early[b])
			continue;
		pass(c, b, set, &unsaved, &restored);
		ok = me_grow(&m->early, &m->cap_early, m->nr_early + 1, sizeof(*m->early));
		if (!ok)
			break;
		m->early[m->nr_early++] = (struct me_early_block){
			block->vaddr, block->vaddr + block->size, c->region.before[b],
			needs[b] ? saved_copy(c, b) : ME_SAVED_NONE};
		for (uint32_t i = 0; ok && (n = next_step(c, b, set, &i, &step)) > 0; i += n) {
			ok = me_grow(&m->steps, &m->cap_steps, m->nr_steps + 1, sizeof(*m->steps));
			if (ok)
				m->steps[m->nr_steps++] = step;
		}
		for (uint32_t e = 0; ok && unsaved && e < block->nr_edges; e++) {
			uint32_t to = end_of(c, edge_of(c, block, e));

			if (!c->region.early[to])
				ok = add_late(c, m, to, unsaved, c->facts.blocks[b].depth_out);
		}
	}
	free(needs);
	return ok && m->nr_steps;
}

static void moved_saves_fini(struct me_moved_saves *m)
{
	free(m->early);
	free(m->steps);
	free(m->late);
}

void me_moved_saves_fini(struct me_moved_saves_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++)
		moved_saves_fini(&list->list[i]);
	free(list->list);
	*list = (struct me_moved_saves_list){0};
}

/* Is the function hot enough, and may its copy differ? */
static bool is_worth_a_look(const struct chooser *c, uint32_t entry)
{
	const struct me_adjustment *a = c->job->adjustments;

	if (entry == MP_NONE || !c->usable[entry] ||
	    (a && a[c->job->cfg->blocks[entry].func].kinds))
		return false;
	return is_stress(c) || c->job->counts.block[entry] * 2 * (ME_NR_CALLEE_SAVED + 1) >=
				       GAIN_SHARE * c->nr_insns;
}

int me_moved_saves_choose(const struct me_job *job, struct me_moved_saves_list *out)
{
	struct chooser c;
	int rc = chooser_init(&c, job) ? 0 : -ENOMEM;

	for (uint32_t f = 0; !rc && f < job->cfg->nr_funcs; f++) {
		struct me_moved_saves moved = {0};
		uint32_t entry = job->cfg->funcs[f].nr_blocks
					 ? mp_cfg_block_starting(job->cfg, job->cfg->funcs[f].vaddr)
					 : MP_NONE;
		uint8_t set = 0;

		if (!is_worth_a_look(&c, entry))
			continue;
		c.func = f;
		c.entry = entry - job->cfg->funcs[f].first_block;
		if (me_saves_find(job->cfg, f, c.kept, &c.facts))
			set = best_set(&c);
		if (set && note(&c, set, &moved)) {
			if (me_grow(&out->list, &out->cap, out->nr + 1, sizeof(*out->list)))
				out->list[out->nr++] = moved;
			else
				rc = -ENOMEM;
		} else {
			moved_saves_fini(&moved);
		}
		me_saves_fini(&c.facts);
	}
	chooser_fini(&c);
	return rc;
}
