// SPDX-License-Identifier: Apache-2.0
/*
 * stack_walk - turns the registers and the copied stack of a sample into its callers: a USER_STACK
 * record into a STACK record. Called by pipeline, when the address spaces are those of the sample.
 */
#ifndef MD_STACK_WALK_H
#define MD_STACK_WALK_H

#include "daemon/attribute/attribute.h"

struct md_stack_walk;

/* Return: NULL: no memory. */
struct md_stack_walk *md_stack_walk_new(void);
void md_stack_walk_free(struct md_stack_walk *walk);
/* Return: the rows of the vDSO, in the form of rows_laid; NULL: they cannot be had. */
const struct mp_rows *md_stack_walk_vdso(const struct md_stack_walk *walk);

/*
 * md_stack_walk - the callers of the code that @record is about, by the mappings and rows of @at.
 * Return: a STACK record, valid until the next call; NULL: no memory.
 */
struct morph_record *md_stack_walk(struct md_stack_walk *walk, const struct md_attribute *at,
				   const struct morph_user_stack *record);

#endif
