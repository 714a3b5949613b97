// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwinder - which registers an unwinder needs at a place, and which it finds in the
 * stack, by the rows of the original.
 */
#ifndef ME_VERIFY_UNWINDER_H
#define ME_VERIFY_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

struct vf_row;

/* Does an unwinder need @reg at @vaddr to find the frame? Return: 1: yes, or not known; 0: no; -ENOMEM. */
int vf_unwinder_reads(const struct vf *vf, uint64_t vaddr, unsigned int reg);
/* Return: callee-saved registers that the unwinder finds elsewhere by @row, or, not @saved, that it leaves as they are. */
uint16_t vf_row_rules(const struct vf_row *row, bool saved);
/* Return: registers that the unwinder reads to find the caller's frame and registers. */
uint16_t vf_named_by_row(const struct vf_row *row);
/* Return: callee-saved registers that @row finds in the stack. */
uint16_t vf_row_saves(const struct vf_row *row);

#endif
