// SPDX-License-Identifier: Apache-2.0
/* versions - chooses functions; versions_plan.c puts the versions into the plan. */
#include "editor/instrument/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "editor/evidence/flags.h"
#include "editor/instrument/old_code.h"
#include "editor/place/version_tables.h"
#include "libprof/note/audit_file.h"

/* Instructions of the stubs at an entry and at an exit, if nothing is timed. */
#define STUB_INSNS 6

bool me_versions_is_exit(const struct mp_block *block)
{
	return block->term == MP_TERM_RET || block->term == MP_TERM_TAIL ||
	       block->term == MP_TERM_INDIRECT_TAIL;
}

static const char *why_block_is_fixed(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];

	if (block->flags & MP_BLOCK_PADDING)
		return NULL;
	if (block->flags & MP_BLOCK_PROBE)
		return "not audited: a tracer may put a breakpoint into it";
	if (me_block_stays(block) && block->nr_insns > 1)
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

/* Why versions of the function cannot be kept apart and timed; NULL: they can. */
static const char *why_fixed(const struct mp_cfg *cfg, const struct me_flags *flags, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	bool enters = false;

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
		if ((block->flags & MP_BLOCK_ENTRY || me_versions_is_exit(block)) && flags->live[b])
			return "not audited: arithmetic flags are read at its entry or exit";
		enters |= block->flags & MP_BLOCK_ENTRY && !me_block_stays(block);
	}
	return enters ? NULL : "not audited: its entry stays in old code";
}

struct candidate {
	uint32_t func;
	uint64_t samples;
	double entries; /* by the profile */
};

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->func < y->func ? -1 : 1;
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
		if (movable[f] && planned[f] && (c.samples || in->all))
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
		      struct me_versions_report *out)
{
	struct me_versions_left_out *left = &out->left_out[out->nr_left_out];

	if (out->nr_left_out == ME_VERSIONS_LEFT_OUT)
		return;
	snprintf(left->name, sizeof(left->name), "%s", cfg->funcs[c->func].name);
	left->vaddr = cfg->funcs[c->func].vaddr;
	left->samples = c->samples;
	left->why = why;
	out->nr_left_out++;
}

static void take(const struct mp_cfg *cfg, const struct me_flags *flags,
		 const struct me_versions_request *in, const struct candidate *list, uint32_t nr,
		 uint8_t *chosen, struct me_versions_report *out)
{
	double insns = sum_insns(cfg, in->counts);
	uint32_t most = in->all ? MP_AUDIT_MAX_FUNCTIONS : ME_VERSIONS_MAX;

	for (uint32_t i = 0; i < nr && out->nr_funcs < most; i++) {
		uint32_t f = list[i].func;
		const char *why = why_fixed(cfg, flags, f);
		double cost = insns > 0 ? STUB_INSNS * list[i].entries / insns : 0;

		if (!in->all && out->share >= ME_VERSIONS_SHARE)
			break;
		if (in->unproved && in->unproved[f])
			why = "not audited: the tables of its switch are not proved to serve it alone";
		if (why) {
			leave_out(cfg, &list[i], why, out);
			out->nr_fixed++;
		} else if (!in->all && out->cost + cost > ME_VERSIONS_COST) {
			leave_out(
				cfg, &list[i],
				"not audited: it is entered so often that its stubs would cost too much",
				out);
			out->nr_costly++;
		} else {
			chosen[f] = 1;
			out->nr_funcs++;
			out->cost += cost;
			if (in->nr_samples)
				out->share += (double)list[i].samples / (double)in->nr_samples;
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
	if (!rc)
		take(cfg, &flags, request, all, nr, chosen, report);
	if (!rc && !report->nr_funcs)
		rc = nr ? mp_err_set(err, ENODATA, "no function can be audited; the first: %s",
				     report->nr_left_out ? report->left_out[0].why : "")
			: mp_err_set(err, ENODATA, "no function to audit");
	me_flags_fini(&flags);
	free(all);
	return rc;
}
