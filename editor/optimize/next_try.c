// SPDX-License-Identifier: Apache-2.0
/* next_try - collects what verify refused, from one attempt to the next. Called by optimize. */
#include "editor/optimize/next_try.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

/* With more functions, the whole file is refused. */
#define MAX_FUNCS 65536

static struct me_unproved *find(const struct me_next_try *next, uint64_t start)
{
	for (uint32_t i = 0; i < next->nr_registers; i++)
		if (next->registers[i].start == start)
			return &next->registers[i];
	return NULL;
}

static int add_registers(struct me_next_try *next, const struct me_verify_report *report,
			 struct mp_err *err)
{
	bool any = false;

	if (next->nr_registers > MAX_FUNCS)
		return -EPERM;
	if (mp_resize(next->registers, next->nr_registers + report->nr_unproved + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < report->nr_unproved; i++) {
		struct me_unproved *known = find(next, report->unproved[i].start);

		if (!known) {
			next->registers[next->nr_registers++] = report->unproved[i];
			any = true;
		} else if (known->registers != ME_UNPROVED_ANY) {
			known->registers = ME_UNPROVED_ANY;
			any = true;
		}
	}
	return any ? 0 : -EPERM;
}

static bool is_left_out(const struct me_next_try *next, uint64_t vaddr)
{
	for (uint32_t i = 0; i < next->nr_left_out; i++)
		if (next->left_out[i].vaddr == vaddr)
			return true;
	return false;
}

static int add_needed(struct me_slice_barred *needed, const struct me_verify_report *report,
		      struct mp_err *err)
{
	if (mp_resize(needed->vaddrs, (size_t)needed->nr + report->nr_needed))
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(needed->vaddrs + needed->nr, report->needed,
	       report->nr_needed * sizeof(*report->needed));
	needed->nr += report->nr_needed;
	return 0;
}

static int leave_out(struct me_next_try *next, const struct me_verify_report *report,
		     struct mp_err *err)
{
	uint32_t before = next->nr_left_out;

	if (next->nr_tries == ME_NEXT_TRIES_MAX)
		return -EPERM;
	if (mp_resize(next->left_out, before + report->nr_refused + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < report->nr_refused; i++)
		if (!is_left_out(next, report->refused[i].vaddr))
			next->left_out[next->nr_left_out++] = report->refused[i];
	next->nr_tries++;
	return next->nr_left_out > before ? 0 : -EPERM;
}

int me_next_try_learn(struct me_next_try *next, const struct me_verify_report *report,
		      struct mp_err *err)
{
	if (report->nr_unproved)
		return add_registers(next, report, err);
	if (report->nr_needed)
		return add_needed(&next->needed, report, err);
	return report->nr_refused ? leave_out(next, report, err) : -EPERM;
}

void me_next_try_bar(const struct me_next_try *next, const struct mp_cfg *cfg, uint16_t *barred)
{
	for (uint32_t i = 0; i < next->nr_registers; i++) {
		uint32_t f = mp_cfg_func_at(cfg, next->registers[i].start);

		if (f != MP_NONE)
			barred[f] |= next->registers[i].registers;
	}
}

void me_next_try_fini(struct me_next_try *next)
{
	free(next->registers);
	free(next->needed.vaddrs);
	free(next->left_out);
	*next = (struct me_next_try){0};
}
