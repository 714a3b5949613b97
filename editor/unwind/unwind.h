// SPDX-License-Identifier: Apache-2.0
/*
 * unwind - makes .eh_frame, .eh_frame_hdr and LSDAs for moved code.
 *
 * The new tables are complete: every old FDE, and one new FDE per run of moved code of one
 * function. So one section .eh_frame and one PT_GNU_EH_FRAME serve libgcc, gdb, perf and
 * libunwind. Called by emit when every block has its new address.
 */
#ifndef ME_UNWIND_H
#define ME_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

/* Versions of one function whose exceptions do not mix (enum me_version of the plan). */
#define ME_PLACED_VERSIONS 4

#define ME_PLACED_NEVER UINT8_MAX

/* A part of the code that replaces a call: instructions of the called function. */
struct me_placed_part {
	uint64_t vaddr; /* of its instructions in the original */
	uint16_t off;	/* in the code that replaces the call */
	uint16_t size; /* bytes of instructions; branches and a call may follow up to the next part */
	/* bytes behind the instructions from which on the row is that of the replaced call; ME_PLACED_NEVER: none */
	uint8_t frame_end;
};

/*
 * Code that replaces a call of a function with a frame. Its instructions have rows of their own: those of the called
 * function, continued by the call's row. What stands before the first part has the call's row.
 */
struct me_placed_frame {
	struct me_placed_part *parts; /* ascending @off */
	uint8_t nr_parts;
	uint8_t raised; /* bytes by which the stack pointer is higher than in the called function */
	uint16_t size;	/* bytes of the code */
};

/* A copied block. Instructions keep their lengths and order. Only the terminating branch may be
 * re-encoded, inverted, dropped, or followed by an added jump. So offset k of the copy, below
 * old_size - term_len, is offset k of the original; later bytes belong to the terminator. */
struct me_placed {
	uint64_t new_vaddr;
	uint32_t new_size; /* with terminator and added jump */
	uint32_t block;	   /* cfg block index */
	uint32_t padding;  /* nops behind it that control runs through to the next copy */
	bool stub;	   /* no copy: code before the block, with the block's row */
	bool left_out;	   /* a copy without the block's instructions */
	bool passed_by;	   /* control from elsewhere enters a stub of this block */
	/* bytes by which the code for the call at the block's end is longer in the copy */
	int16_t grown;
	uint8_t version; /* below ME_PLACED_VERSIONS; its exceptions land in the same one */
	/*
	 * Offset of a call in a stub; 0: there is none. During this call, and nowhere else in the
	 * stub, the stack pointer is ME_RED_ZONE lower.
	 */
	uint8_t call_off;
	/* No copy: all of the code belongs to what replaces the call at the block's end. */
	bool apart;
	const struct me_placed_frame *frame; /* NULL: what replaces the call has the call's row */
};

/* Bytes of such a call. */
#define ME_PLACED_CALL 5

struct me_unwind {
	/* Three consecutive parts, each 8-aligned, from the requested base_vaddr on. */
	uint8_t *bytes;
	size_t size;
	size_t lsda_off, lsda_size;	    /* -> section .gcc_except_table.morph */
	size_t eh_frame_off, eh_frame_size; /* with terminating zero -> section .eh_frame */
	size_t hdr_off, hdr_size;	    /* -> section .eh_frame_hdr, PT_GNU_EH_FRAME */
	uint32_t nr_fdes_new;
	uint64_t failed_at; /* code that has no rows; 0: there is none */
};

/*
 * me_unwind_check - can @func's unwind information be carried over to a copy?
 * Return: 0: yes; -EPERM: no, with a short reason in words in *@why (static string), e.g. "absolute
 * pointer in LSDA type table needs a dynamic relocation", "unknown personality", "unreadable CFI";
 * -ENOMEM.
 */
int me_unwind_check(const struct mp_cfg *cfg, uint32_t func, const char **why);

/*
 * me_unwind_has_frame - does the row at the start of @block find the frame by a register and an
 * offset, and all that was saved by the frame? Only then a stub before it may push something.
 * Return: 1: yes, 0: no, -ENOMEM.
 */
int me_unwind_has_frame(const struct mp_cfg *cfg, uint32_t block);
/*
 * me_unwind_has_no_frame - does @func have one unwind row, that of a function at its entry, and no
 * exception table? Return: 1: yes, 0: no, -ENOMEM.
 */
int me_unwind_has_no_frame(const struct mp_cfg *cfg, uint32_t func);

/* Rows of a function that has no exception table. */
struct me_stack_rows;

/* *@out: NULL: there are none, or they are not understood. Return: 0, -ENOMEM. Ownership: me_stack_rows_free(). */
int me_stack_rows_new(const struct mp_cfg *cfg, uint32_t func, struct me_stack_rows **out);
/*
 * Return: by how many bytes the stack pointer is lower at @vaddr than at the function's entry; -1: the row there does
 * not find the CFA by the stack pointer.
 */
int64_t me_stack_rows_depth(const struct me_stack_rows *rows, uint64_t vaddr);
void me_stack_rows_free(struct me_stack_rows *rows);
/*
 * me_unwind_composes - is there a row for each instruction of @func in place of the call at @call, in @block, and no
 * landing pad for the call? @raised: as in me_placed_frame. Return: 1: yes, 0: no, -ENOMEM.
 */
int me_unwind_composes(const struct mp_cfg *cfg, uint32_t block, uint64_t call, uint32_t func,
		       int64_t raised);
/*
 * me_unwind_build - makes tables for @placed (ascending new_vaddr; adjacent pieces of one function
 * share an FDE), to be loaded at @base_vaddr. @runtime, @answers: addresses of the runtime and of the code that
 * answers (base/enclosing_code.h), which get unwind tables of their own; 0: there is none. The size does not depend on the addresses. Return: 0,
 * -ENOMEM, -EBADMSG. Ownership: free(out->bytes).
 */
int me_unwind_build(const struct mp_cfg *cfg, const struct me_placed *placed, uint32_t nr_placed,
		    uint64_t base_vaddr, uint64_t runtime, uint64_t answers, struct me_unwind *out,
		    struct mp_err *err);

#endif
