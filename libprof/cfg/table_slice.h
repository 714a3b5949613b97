// SPDX-License-Identifier: Apache-2.0
/* table_slice - follows a register backward from a jump, inside one function. */
#ifndef MP_TABLE_SLICE_H
#define MP_TABLE_SLICE_H

#include "libprof/cfg/table_op.h"

struct mp_pred {
	uint32_t target, source; /* a direct branch inside the function */
};

/* The function that is examined. */
struct mp_slice {
	struct mp_cfg_build *b;
	uint32_t func;
	struct mp_pred *preds;	/* ascending target, then source */
	struct mp_pred *merged; /* room for sorting */
	uint32_t nr_preds, cap_preds, cap_merged;
};

#define MP_MAX_DEFS 12
struct mp_defs {
	struct mp_op op[MP_MAX_DEFS];
	unsigned int nr;
	/*
	 * some definitions are unknown: a way reaches the function's start, or there are
	 * too many ways
	 */
	bool incomplete;
	bool argument; /* only the way to the function's start is unknown: the caller's value */
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
int mp_slice_sort(struct mp_slice *s);
/* The instruction before @at in the same part, or MP_NONE. */
uint32_t mp_slice_prev(const struct mp_slice *s, const struct mp_part *part, uint32_t at);
/* True if execution can fall into @at; padding behind a jump is skipped. */
bool mp_slice_falls_into(const struct mp_slice *s, const struct mp_part *part, uint32_t at);
/* Index of the first direct branch to @at in s->preds; nr_preds if there is none. */
uint32_t mp_slice_first_pred(const struct mp_slice *s, uint32_t at);
/* The instructions that may have set the value of @reg before @at. */
void mp_slice_defs(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_defs *defs);
/* The constants that @reg may hold before @at. */
void mp_slice_values(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_values *values);

/* ---- table_tail.c ---- */
/*
 * *@outside: true if on all ways the value of @reg before @jump was not computed in the
 * function.
 * Return: 0, -ENOMEM.
 */
int mp_slice_from_outside(const struct mp_slice *s, uint32_t jump, uint8_t reg, bool *outside);

/* ---- table_bound.c ---- */
struct mp_bound {
	uint32_t nr; /* entries; 0: no bound found */
	bool exact;  /* from an unsigned comparison: certain */
	bool soft;   /* from a mask, a shift or the width: the table may be shorter */
};

struct mp_bound mp_slice_bound(const struct mp_slice *s, uint32_t at, uint8_t index);

#endif
