// SPDX-License-Identifier: Apache-2.0
/*
 * plan_file - a plan as a file: what --save-plan writes and --plan reads. Called by optimize.
 *
 * A plan names addresses of the original, and nothing else crosses from its author to its reader: it
 * chooses among the copies that this program would make anyway. Who made it does not matter. A plan
 * whose form is wrong, or that does not fit the analysis of the file here, is refused.
 *
 *	8 bytes		"MORPHPLN"
 *	1 byte		format
 *	8 bytes		hash of the original's code, the lowest byte first
 *	1 + n bytes	its build-id
 *	the rest	bits of base/range_coder.h, to the last byte: settings, blocks, calls
 *
 * Three blocks at 0x1000 (16 bytes), 0x1010 and 0x1040 take a few bits each if they follow each other:
 * an address is the distance from the end of the block before, here 0x1000, 0 and 0x20.
 * Documentation/abi.md has the fields.
 */
#ifndef ME_PLAN_FILE_H
#define ME_PLAN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/base/varint.h"
#include "libprof/cfg/cfg.h"

/* Changes with what the bytes mean. */
#define ME_PLAN_FORMAT 1
/* No plan is larger: a block takes a few bits. */
#define ME_PLAN_SIZE_MAX (64u << 20)

/* A plan before blocks are cut at calls, and what decides about these calls. */
struct me_plan_file {
	struct me_plan plan;		 /* blocks and @line_log2 only */
	bool slots, inlines, huge_pages; /* as struct me_layout_options has them */
	bool arranges;		    /* the code of called functions is brought into another order */
	struct me_plan_call *calls; /* ascending @end */
	uint32_t nr_calls;
};

/* Frees what @file holds, not @file itself. */
void me_plan_file_fini(struct me_plan_file *file);

struct me_plan_writer;

/*
 * me_plan_check - has @plan, before blocks are cut at calls, all that layout promises (plan.h)? @movable: per function
 * of @cfg, whether its blocks may be copied. Return: 0, -ENOMEM, -EBADMSG.
 */
int me_plan_check(const struct mp_cfg *cfg, const uint8_t *movable, const struct me_plan *plan,
		  struct mp_err *err);

/*
 * me_plan_writer_new - writes all but the calls, of a plan that me_plan_check() accepts. Later changes of the plan and
 * of @cfg do not count. Return: 0, -ENOMEM. Ownership: me_plan_writer_free(*@out).
 */
int me_plan_writer_new(const struct mp_cfg *cfg, const struct me_plan_file *file,
		       struct me_plan_writer **out, struct mp_err *err);
/* Writes the calls. Sorts them. Return: 0, -ENOMEM; *@out has all bytes. Ownership: free(@out->bytes). */
int me_plan_writer_end(struct me_plan_writer *writer, struct me_plan_call *calls, uint32_t nr_calls,
		       struct mp_varint_writer *out, struct mp_err *err);
/* @writer may be NULL. */
void me_plan_writer_free(struct me_plan_writer *writer);

/*
 * me_plan_file_read - reads and checks a plan. Return: 0, -ENOMEM, -EBADMSG: damaged, or it does not fit.
 * Ownership: me_plan_file_fini(@out).
 */
int me_plan_file_read(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *data,
		      size_t size, struct me_plan_file *out, struct mp_err *err);

#endif
