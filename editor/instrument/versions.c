// SPDX-License-Identifier: Apache-2.0
/* versions - chooses functions; versions_plan.c puts the versions into the plan. */
#include "editor/instrument/versions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "editor/evidence/flags/flags.h"
#include "editor/instrument/old_code.h"
#include "editor/place/version_tables.h"
#include "editor/unwind/unwind.h"
#include "libprof/note/audit_file.h"

/*
 * UNEVEN: the timer hits some instructions several times as often as others, so blocks that run may
 * have this many times fewer samples than their share. The factor is an assumption. A larger one
 * makes the bound on entries looser: more functions count as entered too often for an audit.
 * MOST_UNSEEN: where no sample was seen, three may have been expected, since a Poisson variable of
 * mean 3 is zero with probability 5 %. test_versions shows the effect of the bound.
 */
#define UNEVEN	    4
#define MOST_UNSEEN 3

/*
 * Instructions of the stubs at an entry (jmp, decl, jns, cmpb, jne) and at an exit (cmpb, je), if
 * nothing is timed and nothing decided (audit_code.h).
 */
#define STUB_INSNS 7
/* After a verdict, an entry has one jump more. */
#define DECIDED_INSNS 1

bool me_versions_is_exit(const struct mp_block *block)
{
	return block->term == MP_TERM_RET || block->term == MP_TERM_TAIL ||
	       block->term == MP_TERM_INDIRECT_TAIL;
}

/*
 * Most instructions before the trap of a block that stays. verify reads as many (MAX_BEFORE_TRAP in
 * verify/stubs/verify_versions.c); with more here, verify would refuse the output.
 */
#define MAX_STAYING 8

/* Does the block reach its trap after a few plain instructions, without a call? */
static bool ends_soon(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint32_t off = 0, n = 1; bytes && n < block->nr_insns; off += insn.len, n++)
		if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn) ||
		    insn.kind != MP_INSN_OTHER || n > MAX_STAYING)
			return false;
	return bytes;
}

static const char *why_block_is_fixed(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];

	if (block->flags & MP_BLOCK_PADDING)
		return NULL;
	if (block->flags & MP_BLOCK_PROBE)
		return "not audited: a tracer may put a breakpoint into it";
	if (me_block_stays(block) && !ends_soon(cfg, block))
		return "not audited: code of it that ends in a trap stays where it is";
	if (block->term == MP_TERM_TABLE)
		return me_version_tables_why_not(cfg, b);
	if (block->term == MP_TERM_UNRESOLVED)
		return "not audited: a jump of it may lead to a label or away";
	if (block->term == MP_TERM_COND &&
	    (block->nr_edges < 2 ||
	     cfg->edges[block->first_edge].to == cfg->edges[block->first_edge + 1].to))
		return "not audited: a conditional branch of it leaves the function";
	if (me_versions_is_exit(block) && block->size != block->term_len)
		return "not audited: an exit of it is no block of its own";
	return NULL;
}

/* Does the runtime get control at the block, which needs a plain unwind row for that? */
static bool needs_frame(const struct mp_block *block)
{
	return (me_versions_is_exit(block) || block->flags & MP_BLOCK_ENTRY) &&
	       !(block->flags & MP_BLOCK_PADDING) && !me_block_stays(block);
}

/* Why versions of the function cannot be kept apart and timed; NULL: they can. Out of memory, sets *@failed. */
static const char *why_fixed(const struct mp_cfg *cfg, const struct me_flags *flags, uint32_t func,
			     bool *failed)
{
	const struct mp_func *f = &cfg->funcs[func];
	bool enters = false;
	int has_frame;

	if (f->flags & MP_FUNC_LABELS)
		return "not audited: its labels are values";
	if (flags->shared[func])
		return "not audited: its callers or callees pass arithmetic flags";
	if (me_old_code_may_run(cfg, func))
		return "not audited: control may stay in its old code";
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const char *why = why_block_is_fixed(cfg, b);

		if (why)
			return why;
		has_frame = needs_frame(block) ? me_unwind_has_frame(cfg, b) : 1;
		*failed |= has_frame < 0;
		if (has_frame <= 0)
			return "not audited: its entry or an exit of it has no plain unwind row";
		if ((block->flags & MP_BLOCK_ENTRY || me_versions_is_exit(block)) && flags->live[b])
			return "not audited: arithmetic flags are read at its entry or exit";
		enters |= block->flags & MP_BLOCK_ENTRY && !me_block_stays(block);
	}
	return enters ? NULL : "not audited: its entry stays in old code";
}

struct candidate {
	uint32_t func;
	uint64_t samples;
	double entries;	 /* by the profile, at most */
	double cost;	 /* share of all instructions that its stubs execute */
	double decided;	 /* the same after a verdict */
	const char *why; /* its versions cannot be kept apart; NULL: they can */
	bool taken;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->func < y->func ? -1 : 1;
}

/*
 * Highest count of the entry that agrees with the samples. If no sample fell on the way into a
 * loop, inference still gives the entry some share of the loop's rounds, however many samples the
 * loop has. That count may be far too high. Here the samples of all blocks that run as often as the
 * entry are added up, and bound the count.
 */
static double entries_at_most(const struct mp_cfg *cfg, const struct me_versions_request *in,
			      const struct candidate *c)
{
	const struct mp_func *func = &cfg->funcs[c->func];
	double insns = 0, samples = 0, once = 0;

	if (!c->samples)
		return c->entries;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		double count = in->counts->block[b];

		insns += count * cfg->blocks[b].nr_insns;
		if (fabs(count - c->entries) > 1e-6 * c->entries)
			continue;
		once += cfg->blocks[b].nr_insns;
		samples += (double)in->samples[b];
	}
	samples = UNEVEN * (samples + 2 * sqrt(samples) + MOST_UNSEEN);
	return fmin(c->entries, samples * insns / (double)c->samples / once);
}

/* The functions that the plan copies. */
static uint32_t list(const struct mp_cfg *cfg, const uint8_t *movable, const struct me_plan *plan,
		     const struct me_versions_request *in, struct candidate *out)
{
	uint32_t nr = 0;
	uint8_t *planned = calloc((size_t)cfg->nr_funcs + 1, 1);

	if (!planned)
		return MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		planned[cfg->blocks[plan->blocks[i].block].func] = 1;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		struct candidate c = {.func = f};

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			c.samples += in->samples ? in->samples[b] : 0;
			if (in->counts && cfg->blocks[b].flags & MP_BLOCK_ENTRY)
				c.entries = in->counts->block[b];
		}
		if (!movable[f] || !planned[f] || !(c.samples || in->all))
			continue;
		if (in->counts && in->samples && c.entries > 0)
			c.entries = entries_at_most(cfg, in, &c);
		out[nr++] = c;
	}
	free(planned);
	if (nr)
		qsort(out, nr, sizeof(*out), compare);
	return nr;
}

static double sum_insns(const struct mp_cfg *cfg, const struct mp_counts *counts)
{
	double sum = 0;

	for (uint32_t b = 0; counts && b < cfg->nr_blocks; b++)
		sum += counts->block[b] * cfg->blocks[b].nr_insns;
	return sum;
}

static void leave_out(const struct mp_cfg *cfg, const struct candidate *c, const char *why,
		      double cost, struct me_versions_report *out)
{
	struct me_versions_left_out *left = &out->left_out[out->nr_left_out];

	if (out->nr_left_out == ME_VERSIONS_LEFT_OUT)
		return;
	snprintf(left->name, sizeof(left->name), "%s", cfg->funcs[c->func].name);
	left->vaddr = cfg->funcs[c->func].vaddr;
	left->samples = c->samples;
	left->why = why;
	left->cost = cost;
	out->nr_left_out++;
}

/*
 * Fills in what the stubs of each candidate cost, and why it is left out regardless of other
 * candidates. Return: 0, -ENOMEM.
 */
static int judge(const struct mp_cfg *cfg, const struct me_flags *flags,
		 const struct me_versions_request *in, struct candidate *list, uint32_t nr)
{
	double insns = sum_insns(cfg, in->counts);
	bool failed = false;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t f = list[i].func;

		list[i].cost = insns > 0 ? STUB_INSNS * list[i].entries / insns : 0;
		list[i].decided = insns > 0 ? DECIDED_INSNS * list[i].entries / insns : 0;
		list[i].why = why_fixed(cfg, flags, f, &failed);
		if (in->unproved && in->unproved[f])
			list[i].why = "not audited: the tables of its switch are not proved to "
				      "serve it alone";
	}
	return failed ? -ENOMEM : 0;
}

/* Functions with the most samples per cost of their stubs come first. */
static int compare_worth(const void *a, const void *b)
{
	const struct candidate *x = *(const struct candidate *const *)a;
	const struct candidate *y = *(const struct candidate *const *)b;
	double left = (double)x->samples * y->cost, right = (double)y->samples * x->cost;

	if (left != right)
		return left < right ? 1 : -1;
	return compare(x, y);
}

/* Do the budgets allow the stubs of @c beside those that @out counts? */
static bool is_affordable(const struct candidate *c, const struct me_versions_report *out)
{
	return out->cost + c->cost <= ME_VERSIONS_COST &&
	       out->decided_cost + c->decided <= ME_VERSIONS_DECIDED_COST;
}

static void take(const struct me_versions_request *in, struct candidate *c,
		 struct me_versions_report *out)
{
	c->taken = true;
	out->nr_funcs++;
	out->cost += c->cost;
	out->decided_cost += c->decided;
	if (in->nr_samples)
		out->share += (double)c->samples / (double)in->nr_samples;
}

/*
 * Chooses functions within the limits: among those with most samples, the ones with the most
 * samples per cost. A function that exceeds a budget by itself takes no place among them.
 */
static void take_worth(const struct me_versions_request *in, struct candidate *list, uint32_t nr,
		       struct me_versions_report *out)
{
	struct candidate *pool[ME_VERSIONS_MAX];
	const struct me_versions_report nothing = {0};
	uint32_t nr_pool = 0;

	for (uint32_t i = 0; i < nr && nr_pool < ME_VERSIONS_MAX; i++)
		if (!list[i].why && is_affordable(&list[i], &nothing))
			pool[nr_pool++] = &list[i];
	if (nr_pool)
		qsort(pool, nr_pool, sizeof(*pool), compare_worth);
	for (uint32_t i = 0; i < nr_pool; i++)
		if (out->share < ME_VERSIONS_SHARE && is_affordable(pool[i], out))
			take(in, pool[i], out);
}

static void take_all(const struct me_versions_request *in, struct candidate *list, uint32_t nr,
		     struct me_versions_report *out)
{
	for (uint32_t i = 0; i < nr && out->nr_funcs < MP_AUDIT_MAX_FUNCTIONS; i++)
		if (!list[i].why)
			take(in, &list[i], out);
}

/* Why a function whose versions could be kept apart was not taken. */
static const char *why_not_taken(const struct candidate *c, const struct me_versions_report *out)
{
	const struct me_versions_report nothing = {0};

	if (!is_affordable(c, &nothing))
		return "not audited: it is entered so often that its stubs would cost too much";
	if (!is_affordable(c, out))
		return "not audited: functions that tell more for their cost use up what stubs may "
		       "cost";
	return "not audited: other functions have more samples";
}

/* Report the other functions with most samples. */
static void report_others(const struct mp_cfg *cfg, const struct me_versions_request *in,
			  const struct candidate *list, uint32_t nr, struct me_versions_report *out)
{
	uint32_t most = in->all ? MP_AUDIT_MAX_FUNCTIONS : ME_VERSIONS_MAX, seen = 0;
	bool full = out->nr_funcs == most || (!in->all && out->share >= ME_VERSIONS_SHARE);

	/*
	 * Functions behind the last one that was taken were not looked at if no more were wanted.
	 */
	for (uint32_t i = 0; i < nr && (!full || seen < out->nr_funcs); i++) {
		if (list[i].taken) {
			seen++;
		} else if (list[i].why) {
			leave_out(cfg, &list[i], list[i].why, 0, out);
			out->nr_fixed++;
		} else if (!in->all) {
			leave_out(cfg, &list[i], why_not_taken(&list[i], out), list[i].cost, out);
			if (is_affordable(&list[i], out))
				continue;
			out->nr_costly++;
			if (in->nr_samples)
				out->share_costly +=
					(double)list[i].samples / (double)in->nr_samples;
		}
	}
}

int me_versions_choose(const struct mp_cfg *cfg, const uint8_t *movable, const struct me_plan *plan,
		       const struct me_versions_request *request, uint8_t *chosen,
		       struct me_versions_report *report, struct mp_err *err)
{
	struct candidate *all = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*all));
	struct me_flags flags = {0};
	uint32_t nr = all ? list(cfg, movable, plan, request, all) : MP_NONE;
	int rc = nr == MP_NONE ? mp_err_set(err, ENOMEM, "out of memory")
			       : me_flags_find(cfg, movable, true, &flags, err);

	*report = (struct me_versions_report){0};
	if (!rc && judge(cfg, &flags, request, all, nr))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc) {
		(request->all ? take_all : take_worth)(request, all, nr, report);
		for (uint32_t i = 0; i < nr; i++)
			chosen[all[i].func] = all[i].taken;
		report_others(cfg, request, all, nr, report);
	}
	if (!rc && !report->nr_funcs)
		rc = nr ? mp_err_set(err, ENODATA, "no function can be audited; the first: %s",
				     report->nr_left_out ? report->left_out[0].why : "")
			: mp_err_set(err, ENODATA, "no function to audit");
	me_flags_fini(&flags);
	free(all);
	return rc;
}
