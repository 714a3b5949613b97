// SPDX-License-Identifier: Apache-2.0
/*
 * number - which numbers a copy keeps in a register, so that whoever interrupts it can tell by which
 * way control came.
 *
 * The numbers of PEP (CGO 2005, sections 3.2 to 3.4) serve at a path's end; read at any instruction
 * they must tell the ways *to* a block apart. So the ways from a start are numbered: where ways
 * meet, those by the k-th edge have the numbers behind those of the edges before it. The likeliest
 * edge comes first: it adds nothing. A path starts where a function is entered, at the branch that
 * ends a loop's turn, behind a call, where no register is free, and where control may come out of old
 * code.
 */
#ifndef ME_NUMBER_H
#define ME_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"
#include "libprof/counts.h"
#include "libprof/err.h"

struct me_number_report {
	uint32_t nr_funcs; /* with stubs or without */
	uint32_t nr_stubs;
	uint32_t nr_inline;	     /* of these: control falls through; others cost a jump more */
	uint32_t nr_merges, nr_told; /* where ways meet; where their number tells which was taken */
	double merges, told;	     /* the same by the profile: arrivals */
	double stubs, insns;	     /* instructions of stubs and others that run, by the profile */
	uint32_t nr_polls,
		nr_ends; /* where it is asked for the path; where paths end that tell something */
	double polls, ends; /* the same by the profile */
};

struct me_number;

/*
 * me_number_new - finds which registers are free in the functions with @movable[func]. @cfg has fine
 * blocks. @polls: where paths end the copies poll. @barred: per function, registers that are not to be
 * used there; NULL: none.
 * Return: 0, -ENOMEM, and with @polls -EPERM. Ownership: me_number_free(), which takes NULL.
 */
int me_number_new(const struct mp_cfg *cfg, bool polls, const uint8_t *movable,
		  const uint16_t *barred, struct me_number **out, struct mp_err *err);
/*
 * me_number_plan - puts the stubs into @plan, and what it lacks of the functions with @movable; and
 * what the numbers mean into its table. @counts: as me_instrument_plan() takes them.
 * Return: 0, -ENOMEM.
 */
int me_number_plan(struct me_number *number, const struct mp_counts *counts, const uint8_t *movable,
		   struct me_plan *plan, struct me_number_report *report, struct mp_err *err);
void me_number_free(struct me_number *number);

#endif
