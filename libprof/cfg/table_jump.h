// SPDX-License-Identifier: Apache-2.0
/*
 * table_jump - which tables one indirect jump uses. Called by table, jump by jump.
 */
#ifndef MP_TABLE_JUMP_H
#define MP_TABLE_JUMP_H

#include "libprof/cfg/table_slice.h"

/* The length of a table, as its uses tell. */
struct mp_table_length {
	uint32_t bound;
	bool exact, unbounded;
};

struct mp_table_finder {
	struct mp_slice slice;
	struct mp_cfg_build *b;
	uint32_t func, jump;
	uint32_t first_table, first_use; /* first ones of this function */
	bool found;			 /* this jump has a table */
	bool odd; /* its target is computed in a way that is not understood */
	/* certainly by arithmetic; without this, the way may only be too long to follow */
	bool computed;
	int error;
};

static inline struct mp_table_length *mp_table_lengths(struct mp_cfg_build *b)
{
	return b->table_lengths;
}

/* Records that the jump of @f uses @table. Return: 0, -ENOMEM. */
int mp_table_add_use(struct mp_table_finder *f, uint32_t table);
/* Finds the tables of @jump, and sets what is known of the jump. An error is in @f->error. */
void mp_table_recognise(struct mp_table_finder *f, uint32_t jump);

#endif
