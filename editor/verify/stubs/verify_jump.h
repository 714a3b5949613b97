// SPDX-License-Identifier: Apache-2.0
/*
 * verify_jump - finds the targets of an indirect jump that reads a table, by the instructions
 * before it.
 */
#ifndef ME_VERIFY_JUMP_H
#define ME_VERIFY_JUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find the targets of indirect jumps that read tables. Return: 0, -ENOMEM, or a refusal. */
int vf_graph_find_tables(const struct vf *vf);
/*
 * Does a function of this name never return? Only names that the C and C++ standards, POSIX and the ABI reserve, so that
 * no library defines them otherwise. verify.md states this as an assumption.
 */
bool vf_is_noreturn_name(const char *name);
/* Does the loader fill the cell at @vaddr with a function that never returns? */
bool vf_is_noreturn_slot(const struct vf *vf, uint64_t vaddr);

#endif
