// SPDX-License-Identifier: Apache-2.0
/*
 * table_slice - follows a register backward from a jump, inside one function.
 */
#ifndef MP_TABLE_SLICE_H
#define MP_TABLE_SLICE_H

#include "libprof/table_op.h"

struct mp_pred {
	uint32_t target, source; /* a direct branch inside the function */
};

/* One function under the glass. */
struct mp_slice {
	struct mp_cfg_build *b;
	uint32_t func;
	struct mp_pred *preds; /* ascending target */
	uint32_t nr_preds, cap_preds;
};

#define MP_MAX_DEFS 12
struct mp_defs {
	struct mp_op op[MP_MAX_DEFS];
	unsigned int nr;
	bool incomplete; /* a path to the function's start, or too many */
	bool argument;	 /* the incompleteness is that start alone: the caller's value */
};

#define MP_MAX_VALUES 8
struct mp_values {
	uint64_t value[MP_MAX_VALUES];
	unsigned int nr;
	bool incomplete;
};

int mp_slice_init(struct mp_slice *s, struct mp_cfg_build *b, uint32_t func);
void mp_slice_fini(struct mp_slice *s);
int mp_slice_add_pred(struct mp_slice *s, uint32_t target, uint32_t source);
void mp_slice_sort(struct mp_slice *s);
/* The instruction before @at in the same part, or MP_NONE. */
uint32_t mp_slice_prev(const struct mp_slice *s, const struct mp_part *part, uint32_t at);
/* True where execution can run into @at from above: not over padding behind a jump. */
bool mp_slice_falls_into(const struct mp_slice *s, const struct mp_part *part, uint32_t at);
/* First direct branch to @at in s->preds; nr_preds where there is none. */
uint32_t mp_slice_first_pred(const struct mp_slice *s, uint32_t at);
/* The instructions that may have set @reg as it is before @at. */
void mp_slice_defs(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_defs *defs);
/* The constants that @reg may hold before @at. */
void mp_slice_values(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_values *values);

/* ---- table_tail.c ---- */
/* Whether @reg, before @jump, holds on all ways a value that was not computed in the function.
 * Return: 0, -ENOMEM. */
int mp_slice_from_outside(const struct mp_slice *s, uint32_t jump, uint8_t reg, bool *outside);

/* ---- table_bound.c ---- */
struct mp_bound {
	uint32_t nr; /* entries, 0: no bound found */
	bool exact;  /* an unsigned comparison, not a guess */
	bool soft;   /* what a mask, a shift or the width allows: the table may be shorter */
};

struct mp_bound mp_slice_bound(const struct mp_slice *s, uint32_t at, uint8_t index);

#endif
