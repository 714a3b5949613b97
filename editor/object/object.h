// SPDX-License-Identifier: Apache-2.0
/*
 * object - rewrites relocatable objects (ET_REL) and archives of them: hot functions get sections
 * of their own with their blocks in the order of a plan; cold blocks go to .text.unlikely.NAME.
 *
 * The plan is that of a program that was linked from the objects. A function of the object takes
 * part if a function of the program has its name and its code, apart from relocated fields.
 * Documentation/objects.md. Called by cli.
 */
#ifndef ME_OBJECT_H
#define ME_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "editor/optimize/optimize.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"

struct mp_counts;

/* The program's analysis and plan, while me_optimize() runs (options.take_plan). */
struct me_object_plan {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts; /* NULL: --all */
	const struct me_plan *plan;
	uint32_t *by_name; /* functions of @cfg that have names, sorted by these */
	uint32_t nr_by_name;
	/* Blocks of the plan by function: those of function f are order[first[f] .. first[f + 1]). */
	uint32_t *order, *first;
};

/* Return: 0, -ENOMEM. Ownership: me_object_plan_fini(). */
int me_object_plan_init(struct me_object_plan *plan, const struct mp_cfg *cfg,
			const struct mp_counts *counts, const struct me_plan *made,
			struct mp_err *err);
void me_object_plan_fini(struct me_object_plan *plan);
/* Functions named @name: by_name[*@first .. return value). */
uint32_t me_object_plan_named(const struct me_object_plan *plan, const char *name, uint32_t *first);

/* A function that stays in one piece, or where it was. */
struct me_object_left {
	char *member, *name;
	char *why;
	bool moved; /* in one piece */
};

struct me_object_report {
	uint32_t nr_members, nr_members_same; /* of an archive; objects that stay as they are */
	uint32_t nr_funcs, nr_matched;	      /* functions; those that the program has as well */
	uint32_t nr_hot, nr_split, nr_whole;  /* moved; with a cold part; in one piece */
	uint64_t hot_bytes, cold_bytes;
	struct me_object_left *left;
	uint32_t nr_left, cap_left;
	char member[256]; /* the object at work */
};

void me_object_report_fini(struct me_object_report *report);
/* Notes that a function, or (@name NULL) a member, is left alone. */
int me_object_leave(struct me_object_report *report, const char *name, const char *why, bool moved);

/*
 * me_object_rewrite - one object: @out gets the new file, verified. Return: 0; -ENODATA: the plan
 * has nothing for it; -EPERM: it stays as it is, and @err says why; else -errno.
 */
int me_object_rewrite(const uint8_t *bytes, size_t size, const struct me_object_plan *plan,
		      struct me_object_report *report, struct me_bytes *out, struct mp_err *err);
/* The same for an archive; members that cannot be rewritten stay as they are. */
int me_object_rewrite_archive(const uint8_t *bytes, size_t size, const struct me_object_plan *plan,
			      struct me_object_report *report, struct me_bytes *out,
			      struct mp_err *err);

/*
 * me_object_optimize - rewrites options->input, by the plan that me_optimize() makes of @program.
 * Return: as me_optimize().
 */
int me_object_optimize(const struct me_optimize_options *options, const char *program,
		       struct me_object_report *report, struct mp_err *err);

#endif
