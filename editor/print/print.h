// SPDX-License-Identifier: Apache-2.0
/*
 * print - shows what each stage computed, for people who look into Morph: functions, blocks and
 * edges, as text or as graphs for Graphviz.
 *
 * Decides nothing, and reads only plain data of the stages. A graph has a node for each block of a
 * function and an edge for each way between two blocks. Called by optimize.
 */
#ifndef ME_PRINT_H
#define ME_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "editor/evidence/eligible.h"
#include "editor/place/place.h"
#include "editor/plan.h"
#include "editor/evidence/select.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/base/err.h"

enum me_print_what {
	ME_PRINT_CFG,	 /* blocks and edges of the input */
	ME_PRINT_COUNTS, /* how often blocks and edges run, as inferred */
	ME_PRINT_PLAN,	 /* which blocks are copied, in which order and why */
	ME_PRINT_PLACE,	 /* where the copies lie, and which branches end them */
	ME_NR_PRINTS
};

struct me_print_options {
	bool on[ME_NR_PRINTS];
	struct me_words functions[ME_NR_PRINTS]; /* empty: all functions */
	bool dot;				 /* graphs instead of text */
	FILE *out;
};

/* The stages that are printed. */
struct me_print {
	const struct mp_cfg *cfg;
	const struct me_eligible *eligible;
	const struct mp_counts *counts;	      /* NULL: without a profile, or not computed yet */
	const struct me_plan *plan;	      /* NULL: not computed yet */
	const struct me_placement *placement; /* NULL: not computed yet */
};

/*
 * me_print_parse - reads WHAT[:FUNCTION,...]; may be called repeatedly.
 * Return: 0, -EINVAL, -errno with a message. Ownership: me_print_fini(@options).
 */
int me_print_parse(struct me_print_options *options, const char *text, struct mp_err *err);
void me_print_fini(struct me_print_options *options);

/*
 * me_print - prints the stage @what, if @options ask for it; NULL: prints nothing.
 * Return: 0, -ENOENT there is no such function, -ENOMEM, -EIO.
 */
int me_print(const struct me_print_options *options, enum me_print_what what,
	     const struct me_print *data, struct mp_err *err);

#endif
