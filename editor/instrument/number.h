// SPDX-License-Identifier: Apache-2.0
/*
 * number - chooses the numbers that a copy keeps in a register. From the number at an interrupt, a
 * reader can tell the path by which control came.
 *
 * PEP (CGO 2005, sections 3.2 to 3.4) reads its numbers at the ends of paths. Here a number is read
 * at any instruction, so it must tell the paths from a start *to* the present block apart. Where
 * paths merge, those that come by the k-th edge have the numbers that follow those of the edges
 * before it. The likeliest edge comes first and adds nothing. A path starts at a function's entry,
 * at the branch that ends a loop's turn, and behind a call. It also starts where no register is
 * free, and where control may come from old code.
 */
#ifndef ME_NUMBER_H
#define ME_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

struct mp_counts;

struct me_number_report {
	uint32_t nr_funcs; /* numbered functions, with stubs or without */
	uint32_t nr_stubs;
	uint32_t nr_inline; /* stubs that control falls through; others cost a jump */
	uint32_t nr_merges, nr_told_apart; /* merges; those whose paths the number tells apart */
	double merges, told_apart;	   /* arrivals at these, by the profile */
	double stubs, insns; /* executed instructions of stubs, and of blocks, by the profile */
	uint32_t nr_polls, nr_ends; /* polls; ends of paths whose numbers tell something */
	double polls, ends;	    /* executions of these, by the profile */
};

struct me_number;

/*
 * me_number_new - finds the free registers of functions with @movable[func]. @cfg has fine
 * blocks.
 * @polls: copies poll where paths end. @barred: per function, registers not to use; NULL: none.
 * Return: 0, -ENOMEM, and with @polls -EPERM. Ownership: me_number_free(), which takes NULL.
 */
int me_number_new(const struct mp_cfg *cfg, bool polls, const uint8_t *movable,
		  const uint16_t *barred, struct me_number **out, struct mp_err *err);
/*
 * me_number_plan - adds the stubs to @plan, and the blocks of functions with @movable that it
 * lacks. The table in @added tells what the numbers mean. @counts: as me_instrument_plan() takes
 * them.
 * Return: 0, -ENOMEM.
 */
int me_number_plan(struct me_number *number, const struct mp_counts *counts, const uint8_t *movable,
		   struct me_plan *plan, struct me_instrumentation *added,
		   struct me_number_report *report, struct mp_err *err);
void me_number_free(struct me_number *number);

#endif
