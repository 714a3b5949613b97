// SPDX-License-Identifier: Apache-2.0
/*
 * saves - where a function saves registers for its caller, and which of its blocks could run before that.
 *
 * Describes functions whose stack is understood: at each instruction the unwind row finds the CFA by the
 * stack pointer, each saved register is pushed once, and nothing else names its place. Called by
 * optimize_saves, which chooses.
 */
#ifndef ME_SAVES_H
#define ME_SAVES_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"

struct me_callee_saved {
	uint8_t row;	 /* number in unwind rows */
	uint8_t operand; /* number in instructions */
};

/* rbx, rbp, r12 to r15 */
extern const struct me_callee_saved me_callee_saved[ME_NR_CALLEE_SAVED];

/* Return: the bits in unwind rows of the registers of @set. */
uint16_t me_callee_saved_rows(uint8_t set);

/* An instruction that saves a register, restores one, or moves the stack pointer by a constant. */
struct me_save_insn {
	uint64_t vaddr;
	uint8_t len;
	int8_t saves, restores; /* index of the register; -1: none */
	bool flags_used;	/* something reads its flags, or may */
	int32_t raises;		/* bytes that it adds to the stack pointer */
};

struct me_save_block {
	bool plain;	/* all instructions are understood, and so is the way to the next block */
	uint8_t writes; /* registers that it changes, but by restoring them */
	uint8_t saves, restores;
	int32_t depth_in,
		depth_out; /* bytes by which the stack pointer is lower than at the entry */
	uint32_t first_insn, nr_insns; /* in me_save_facts.insns */
};

struct me_save_facts {
	uint8_t saved;			   /* registers that may stay unsaved */
	int32_t place[ME_NR_CALLEE_SAVED]; /* bytes below the CFA; 0: not saved */
	struct me_save_block *blocks;	   /* of the function */
	struct me_save_insn *insns;
	uint32_t nr_insns, cap_insns;
};

/* What functions called by others do to these registers. */
struct me_kept_registers;

/* Return: NULL: out of memory. Ownership: me_kept_registers_free(). */
struct me_kept_registers *me_kept_registers_new(const struct mp_cfg *cfg);
void me_kept_registers_free(struct me_kept_registers *kept);

/*
 * me_saves_find - facts about @func. @kept: what is known of callees, and grows. Return: false: nothing may
 * change there. Ownership: me_saves_fini(@out), in any case.
 */
bool me_saves_find(const struct mp_cfg *cfg, uint32_t func, struct me_kept_registers *kept,
		   struct me_save_facts *out);
void me_saves_fini(struct me_save_facts *facts);

#endif
