// SPDX-License-Identifier: Apache-2.0
/*
 * verify_saves_private - copies in which registers are not saved as early as in the original. Included by
 * verify_private.h only.
 */
#ifndef ME_VERIFY_SAVES_PRIVATE_H
#define ME_VERIFY_SAVES_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/note/map.h"

struct vf;

/* Registers that a function gives back to its caller: rbx, rbp, r12 to r15. A set has a bit for each. */
#define VF_NR_SAVED  6
#define VF_ALL_SAVED ((1u << VF_NR_SAVED) - 1)

enum vf_early_kind {
	VF_EARLY_COPY, /* the instructions are the original's */
	VF_EARLY_STEP, /* one `lea N(%rsp), %rsp` stands for pushes or pops, perhaps with `add` or `sub` */
	VF_EARLY_CODE, /* no copy: moves that save registers, then the way on to a block */
};

/* Per piece: which registers are not in the stack, although the original has saved them. */
struct vf_early {
	uint8_t before, behind; /* at its start, and at its end */
	uint8_t kind;		/* enum vf_early_kind */
	bool leaves; /* verify_pieces: a way leads out of the function to ordinary code */
};

/* A step, as the original's instructions say it. */
struct vf_save_step {
	uint8_t saves, restores; /* sets */
	int64_t raises;		 /* bytes that it adds to the stack pointer */
	uint32_t new_size;	 /* of the copy's instruction */
};

/* Find such pieces. Needs the FDEs of the original. Return: 0, -ENOMEM. */
int vf_find_early(struct vf *vf);
const struct vf_early *vf_early_of(const struct vf *vf, const struct mp_map_piece *p);
/*
 * Must control that comes to @p have left registers unsaved? Then nothing but such code may lead there, so @p does
 * not count as a copy of its block.
 */
bool vf_is_early(const struct vf *vf, const struct mp_map_piece *p);
/* Does anything differ in @p: at its start, at its end or in its instructions? */
bool vf_has_early(const struct vf *vf, const struct mp_map_piece *p);
/* Does such a piece stand for the code at @old? Looks at all pieces. */
bool vf_early_holds(const struct vf *vf, uint64_t old);
/* May the way from @p that led to @old lead to @now, with the registers that are unsaved behind @p? */
bool vf_early_leads_to(const struct vf *vf, const struct mp_map_piece *p, uint64_t old,
		       uint64_t now);
/* Reads a step. Return: false: @p is none. */
bool vf_read_step(const struct vf *vf, const struct mp_map_piece *p, struct vf_save_step *step);
/*
 * Reads an instruction that saves a register by the stack pointer. Return: its length; 0: it is none. *@reg: index;
 * *@disp: from the stack pointer on.
 */
uint32_t vf_read_save(const uint8_t *b, uint64_t avail, int *reg, int64_t *disp);
/* Return: the number in unwind rows of register @i. */
int vf_saved_row(int i);
/* Return: those of these registers that the decoded instruction changes. */
struct vf_full;
uint8_t vf_saved_writes(const struct vf_full *f);

/* verify_kept.c: note that code at @target must give the registers of @set back. Several threads may call this. */
void vf_ask_kept(const struct vf *vf, uint64_t target, uint8_t set);
/* Check all that was noted. */
int vf_check_kept(const struct vf *vf);

#endif
