// SPDX-License-Identifier: Apache-2.0
/* optimize_saves_private - what optimize_saves.c and optimize_saves_choose.c share. */
#ifndef ME_OPTIMIZE_SAVES_PRIVATE_H
#define ME_OPTIMIZE_SAVES_PRIVATE_H

#include "editor/evidence/saves.h"
#include "editor/optimize/optimize_private.h"

/* A block that runs before registers are saved. */
struct me_early_block {
	uint64_t vaddr, end;
	uint8_t before; /* registers that the original has saved at its start, and the copy has not */
	uint8_t saved; /* how its other copy, where they are saved, is wanted: enum me_saved_copy */
};

enum me_saved_copy {
	ME_SAVED_NONE, /* nothing leads there */
	ME_SAVED_WARM,
	ME_SAVED_HOT,
};

/* Instructions of such a block, side by side, for which the copy has one that moves the stack pointer. */
struct me_step {
	uint64_t vaddr, end;
	int32_t adjust; /* bytes that they add to the stack pointer */
	uint8_t saves;	/* registers that they save */
};

/* A block to which control goes from such blocks. Registers are saved before it. */
struct me_late_block {
	uint64_t vaddr;
	uint8_t unsaved;
	int32_t depth; /* bytes by which the stack pointer is lower than at the function's entry */
};

/* What changes in one function. */
struct me_moved_saves {
	uint32_t func;
	uint8_t set;			   /* registers */
	int32_t place[ME_NR_CALLEE_SAVED]; /* bytes below the CFA */
	struct me_early_block *early;	   /* ascending */
	struct me_step *steps;		   /* ascending */
	struct me_late_block *late;
	uint32_t nr_early, nr_steps, nr_late;
	uint32_t cap_early, cap_steps, cap_late;
};

struct me_moved_saves_list {
	struct me_moved_saves *list; /* ascending func */
	uint32_t nr, cap;
};

/* Chooses functions, registers and blocks. Return: 0, -ENOMEM. Ownership: me_moved_saves_fini(@out), in any case. */
int me_moved_saves_choose(const struct me_job *job, struct me_moved_saves_list *out);
void me_moved_saves_fini(struct me_moved_saves_list *list);

#endif
