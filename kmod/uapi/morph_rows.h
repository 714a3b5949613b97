/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * morph_rows - the bytes of unwind rows that MORPH_IOC_ROWS takes: how to find the caller's
 * frame, for each instruction of a file. Described in Documentation/abi.md. All numbers are
 * little-endian and aligned:
 *
 *	struct morph_rows_head
 *	struct morph_row_rule rules[nr_rules]
 *	__u32 pages[nr_pages + 1]	index of the first row in each 64 KiB; then nr_rows
 *	struct morph_row rows[nr_rows]	ascending
 *	zeros up to a multiple of 8
 *
 * A row holds up to the next row, also across pages. The last one says that nothing is known
 * from there on. libprof/unwind/row_format.h has the same under its own names and licence;
 * daemon/source/kmod_rows.c asserts that both agree.
 */
#ifndef MORPH_ROWS_H
#define MORPH_ROWS_H

#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

#define MORPH_ROWS_MAGIC     0x3157524dU /* "MRW1" */
#define MORPH_ROWS_PAGE	     0x10000U
#define MORPH_ROWS_PAGES_MAX 0x10000U
#define MORPH_ROWS_RULES_MAX 8192U
#define MORPH_ROWS_MAX	     (1U << 24)
#define MORPH_ROWS_BASE_END  (1ULL << 47)

struct morph_rows_head {
	__u32 magic;
	__u32 nr_rules;
	__u32 nr_rows;
	__u32 nr_pages;
	__u64 base; /* link-time address of the first page, a multiple of its size */
};

struct morph_row {
	__u16 low;    /* lower 16 bits of the link-time address */
	__u16 number; /* of its rule */
};

/* How the CFA, the caller's stack pointer, is computed. Registers have x86's numbers. */
enum morph_row_cfa {
	MORPH_ROW_STOP,	    /* cannot be computed; @stop says why */
	MORPH_ROW_REGISTER, /* cfa_reg + cfa_off */
	MORPH_ROW_DEREF,    /* the word at cfa_reg + cfa_off, + cfa_add */
	/* cfa_reg + cfa_off, and 8 more if the lower four bits of the address are >= cfa_add */
	MORPH_ROW_PLT,
	MORPH_NR_ROW_CFA,
};

/* Ways to find a saved word: the caller's rbp, or the return address. */
enum morph_row_saved {
	MORPH_ROW_SAME,	   /* still in its register; not for the return address */
	MORPH_ROW_AT_CFA,  /* at CFA + offset */
	MORPH_ROW_AT_RSP,  /* at this frame's rsp + offset */
	MORPH_ROW_AT_RBP,  /* at this frame's rbp + offset */
	MORPH_ROW_UNKNOWN, /* not to be found; not for the return address */
	MORPH_NR_ROW_SAVED,
};

#define MORPH_ROW_SIGNAL 1U  /* frame of a signal handler's return: the caller was interrupted */
#define MORPH_ROW_BOTTOM 2U  /* there is no caller */
#define MORPH_ROW_ENTRY	 12U /* either bit: the row begins an FDE; walks ignore them */

/* Why a row gives no caller. */
enum morph_row_stop {
	MORPH_ROW_STOP_NONE,
	MORPH_ROW_STOP_NO_ROW,	   /* no FDE covers the address */
	MORPH_ROW_STOP_EXPRESSION, /* an expression of unknown form gives the CFA */
	MORPH_ROW_STOP_RETURN,	   /* a rule of unknown kind gives the return address */
	MORPH_ROW_STOP_PROGRAM,	   /* operations that unwinders read differently */
	MORPH_ROW_STOP_OVERLAP,	   /* two FDEs start at one address */
	MORPH_ROW_STOP_RANGE,	   /* an offset or a number is too large */
	MORPH_ROW_STOP_STACK,	   /* the code has changed to another stack */
	MORPH_NR_ROW_STOP,
};

/* Fields that a rule's kind does not use are 0. */
struct morph_row_rule {
	__u8 cfa;     /* enum morph_row_cfa */
	__u8 cfa_reg; /* below 16 */
	__u8 rbp;     /* enum morph_row_saved */
	__u8 ra;      /* enum morph_row_saved */
	__s32 cfa_off;
	__s32 cfa_add;
	__s32 rbp_off;
	__s32 ra_off;
	__u16 flags; /* MORPH_ROW_* */
	__u16 stop;  /* enum morph_row_stop */
};

MORPH_ASSERT_SIZE(morph_rows_head, 24);
MORPH_ASSERT_OFFSET(morph_rows_head, base, 16);
MORPH_ASSERT_SIZE(morph_row, 4);
MORPH_ASSERT_OFFSET(morph_row, number, 2);
MORPH_ASSERT_SIZE(morph_row_rule, 24);
MORPH_ASSERT_OFFSET(morph_row_rule, cfa_off, 4);
MORPH_ASSERT_OFFSET(morph_row_rule, flags, 20);

#endif
