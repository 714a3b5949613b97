// SPDX-License-Identifier: Apache-2.0
/*
 * meter - counters at a few places that the user names, and nowhere else: a cheap measure of how much work a program
 * did. Decides whether a counter can stand at a place; the stubs are those of a version that counts edges. Called by
 * optimize.
 */
#ifndef ME_METER_H
#define ME_METER_H

#include <stdint.h>

#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/base/err.h"

struct mp_cfg;

struct me_meter_report {
	uint32_t nr_places, nr_funcs;
	uint32_t nr_inline; /* stubs that control falls through; any other costs a jump */
};

struct me_meter;

/*
 * me_meter_new - reads the file @path, one place a line (libprof/note/edge_place.h), and finds the stubs.
 * @movable: functions that may move; @detail: why others may not, or NULL.
 * Return: 0; -EINVAL: no such list of places; -EPERM: no counter can stand at a place; -errno. Messages name the line.
 * Ownership: me_meter_free(*@out), which takes NULL.
 */
int me_meter_new(const struct mp_cfg *cfg, const uint8_t *movable, const char *const *detail,
		 const char *path, struct me_meter **out, struct mp_err *err);
/* Return: one byte per function: not 0: it holds counters, so all of it has to be copied. */
const uint8_t *me_meter_functions(const struct me_meter *meter);
/*
 * me_meter_plan - adds the stubs to @plan, and the blocks that it lacks of the functions with stubs. Encodes the table
 * into @added: counter i is that of line i. Return: 0, -ENOMEM.
 */
int me_meter_plan(struct me_meter *meter, struct me_plan *plan, struct me_instrumentation *added,
		  struct me_meter_report *report, struct mp_err *err);
void me_meter_free(struct me_meter *meter);

#endif
