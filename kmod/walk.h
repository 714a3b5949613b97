/* SPDX-License-Identifier: GPL-2.0 */
/*
 * walk - finds the callers of the interrupted user code, from its registers, the unwind rows
 * of what is mapped, and the words of its stack.
 * Each thread's last walk is remembered. A walk goes on by rows until it meets a remembered
 * frame; from there on it compares the remembered words with those in memory, as long as
 * they are the same. Every word that decides about a frame is compared, so the result is
 * always that of a walk by rows alone. A walk ends with the first frame that is not certain.
 *
 * Tests and fuzzers compile this file and walk.c with an environment of their own: what
 * walk_user.h has for the kernel, and morph_code_find(). Called by stack.
 */
#ifndef MORPH_WALK_H
#define MORPH_WALK_H

#include <linux/types.h>

#include "kmod/rows.h"
#include "kmod/uapi/morph_abi.h"

#define MORPH_STACK_MAX 127

/* ---- what is mapped ---- */

enum morph_code_kind {
	MORPH_CODE_ROWS,
	MORPH_CODE_BARE,   /* it is known to have no rows, as code of a JIT compiler */
	MORPH_CODE_ASKED,  /* a file whose rows the reader did not give */
	MORPH_CODE_FRAMED, /* no rows are used: all code is taken to have frame pointers */
};

/* Executable memory from @start on. */
struct morph_code {
	u64 start, size;
	u64 bias; /* + the run-time address: the link-time address */
	const struct morph_rows_table *rows;
	enum morph_code_kind kind;
};

struct morph_codes;

/*
 * Return: what is mapped at @ip, valid until the walk's end; NULL: nothing that can be
 * executed, or that cannot be found out now.
 */
const struct morph_code *morph_code_find(struct morph_codes *codes, u64 ip);

/* ---- the last walk of a thread ---- */

#define MORPH_FRAME_HARD 1  /* only its row can find it: its words are not all remembered */
#define MORPH_FRAME_BASE 2  /* the frame was found by rbp, whose value @base is */
#define MORPH_FRAME_SAVE 4  /* the caller's rbp lies at @slot + @rbp_off */
#define MORPH_FRAME_LOSE 8  /* the caller's rbp cannot be found */
#define MORPH_FRAME_BACK 16 /* the stack pointer has moved back, here or further in */

struct morph_frame {
	u64 slot; /* where the return address lies; the caller's rsp is 8 more, unless HARD */
	u64 ip;	  /* the return address */
	u64 base;
	s32 rbp_off; /* without SAVE and LOSE, the function left rbp alone */
	u32 flags;
};

/* One page, with the thread that it belongs to. */
struct morph_last {
	u32 owner; /* for the table of threads */
	u32 tid;
	u64 start_ns;
	u32 used;
	u32 epoch;
	u32 generation;
	u8 nr;
	u8 stop;       /* enum morph_stack_stop */
	u8 is_back;    /* some frame is BACK */
	u8 is_row_end; /* BOTTOM by a row, not by a return address of 0 */
	struct morph_frame frames[MORPH_STACK_MAX]; /* outermost first */
};

/* ---- the walk ---- */

#define MORPH_NR_PT_REGS 21 /* words of the kernel's struct pt_regs */

enum morph_rbp {
	MORPH_RBP_VALUE,
	MORPH_RBP_AT, /* saved at this address */
	MORPH_RBP_UNKNOWN,
};

struct morph_walk {
	/* Set by the caller. */
	const u64 *regs; /* as in struct pt_regs */
	struct morph_codes *codes;
	struct morph_last *last; /* NULL: nothing is or can be remembered */
	bool is_same_code;	 /* @last was made with the mappings and rows of now */
	u64 *ips;		 /* room for @max callers, innermost first */
	u32 max;
	/* Results. */
	u32 nr;	      /* callers */
	u32 nr_old;   /* of them, outermost: not certainly new since the last walk */
	bool is_aged; /* @nr_old is known: the last walk was on the same stack */
	u32 nr_read;  /* callers that were found again without their rows */
	/* The walk's own: the next frame to be left. */
	u64 ip, rsp, rbp;
	enum morph_rbp rbp_kind;
	bool is_first, is_exact, is_back, is_row_end;
	const struct morph_code *code;
	u32 at;		/* remembered frames that are not known to lie further in */
	u32 nr_certain; /* callers up to the outermost that is certainly new */
	u32 nr_frames;
	u32 copy_from, copy_end;		    /* remembered frames, not yet in @frames */
	struct morph_frame frames[MORPH_STACK_MAX]; /* innermost first */
};

/* Return: why there are no more callers. Remembers the walk. */
enum morph_stack_stop morph_walk(struct morph_walk *w);

#endif
