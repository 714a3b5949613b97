// SPDX-License-Identifier: Apache-2.0
/* call_clock - puts two stubs before each entry; see call_clock.h. Called by optimize. */
#include "editor/instrument/call_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/evidence/eligible.h"
#include "editor/evidence/flags/flags.h"
#include "editor/instrument/old_code.h"
#include "editor/instrument/stubs.h"
#include "editor/unwind/unwind.h"
#include "libprof/note/call_table.h"

struct planner {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	struct me_flags flags;
	struct me_stubs stubs;
	struct me_call_clock_report *report;
};

static double runs(const struct planner *p, uint32_t block)
{
	return p->counts ? p->counts->block[block] : 0;
}

static bool is_entry(const struct mp_cfg *cfg, uint32_t block)
{
	return cfg->blocks[block].flags & MP_BLOCK_ENTRY;
}

/* Entries beyond the first one, in hand-written code, must be able to count as well. Return: 1: yes, 0: no, -ENOMEM. */
static int may_count(const struct planner *p, uint32_t func)
{
	const struct mp_func *f = &p->cfg->funcs[func];
	int has_frame, any = 0;

	if (p->flags.shared[func] || me_old_code_may_run(p->cfg, func))
		return 0;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		if (!is_entry(p->cfg, b))
			continue;
		if (me_block_stays(&p->cfg->blocks[b]) || p->flags.live[b])
			return 0;
		has_frame = me_unwind_has_frame(p->cfg, b);
		if (has_frame <= 0)
			return has_frame;
		any = 1;
	}
	return any;
}

static bool add_stubs(struct planner *p, uint32_t block)
{
	const struct me_stub counts = {.does = ME_STUB_CLOCKS, .arrivals = ME_STUB_OUTSIDE};
	const struct me_stub samples = {.does = ME_STUB_SAMPLES, .arrivals = ME_STUB_POLL};

	return me_stubs_add(&p->stubs, (struct me_stub_to){block, counts}) &&
	       me_stubs_add(&p->stubs, (struct me_stub_to){block, samples});
}

static bool add_function(struct planner *p, uint32_t func)
{
	const struct mp_func *f = &p->cfg->funcs[func];
	int counts = may_count(p, func);

	if (counts < 0)
		return false;
	p->report->nr_funcs += (uint32_t)counts;
	p->report->nr_without += !counts;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		p->report->insns += runs(p, b) * p->cfg->blocks[b].nr_insns;
		if (!is_entry(p->cfg, b))
			continue;
		if (!counts)
			p->report->without += runs(p, b);
		else if (!add_stubs(p, b))
			return false;
		else
			p->report->entries += runs(p, b);
	}
	return true;
}

int me_call_clock_plan(const struct mp_cfg *cfg, const struct mp_counts *counts,
		       const uint8_t *movable, struct me_plan *plan,
		       struct me_instrumentation *added, struct me_call_clock_report *report,
		       struct mp_err *err)
{
	struct planner p = {.cfg = cfg, .counts = counts, .report = report};
	int rc = me_flags_find(cfg, movable, false, &p.flags, err);
	uint32_t nr_inline;

	*report = (struct me_call_clock_report){0};
	if (rc)
		return rc;
	for (uint32_t f = 0; f < cfg->nr_funcs && !rc; f++)
		if (movable[f] && cfg->funcs[f].nr_blocks && !add_function(&p, f))
			rc = -ENOMEM;
	if (!rc)
		rc = me_stubs_put(cfg, movable, &p.stubs, plan, added, &nr_inline);
	if (!rc) {
		added->table = mp_call_table_new(report->nr_funcs, &added->table_size);
		rc = added->table ? 0 : -ENOMEM;
	}
	added->clocks = true;
	added->nr_counters = ME_RUNTIME_PAGE / 8;
	added->table_name = MP_CALL_TABLE_SECTION;
	me_stubs_fini(&p.stubs);
	me_flags_fini(&p.flags);
	return rc ? mp_err_code(err, -rc) : 0;
}
