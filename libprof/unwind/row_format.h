// SPDX-License-Identifier: Apache-2.0
/*
 * row_format - the bytes of unwind rows: what a walker must know of each instruction of a module
 * to find the caller's frame. Documentation/abi.md describes them. rows_compile writes them, rows
 * checks them. All numbers are little-endian and aligned.
 *
 *	struct mp_rows_head
 *	struct mp_row_rule rules[nr_rules]
 *	uint32_t pages[nr_pages + 1]	index of the first row in each 64 KiB; then nr_rows
 *	struct mp_row rows[nr_rows]	ascending
 *	zeros up to a multiple of 8
 *
 * A row holds up to the next row, also across pages. The last one says that nothing is known from
 * there on. kmod/uapi/morph_rows.h has the same for the kernel, which cannot include this file;
 * daemon/source/kmod_rows.c asserts that both agree.
 */
#ifndef MP_ROW_FORMAT_H
#define MP_ROW_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define MP_ROWS_MAGIC	  0x3157524dU /* "MRW1" */
#define MP_ROWS_PAGE	  0x10000U
#define MP_ROWS_PAGES_MAX 0x10000U
#define MP_ROWS_RULES_MAX 8192U
#define MP_ROWS_MAX	  (1u << 24)
#define MP_ROWS_BASE_END  (UINT64_C(1) << 47)

struct mp_rows_head {
	uint32_t magic;
	uint32_t nr_rules;
	uint32_t nr_rows;
	uint32_t nr_pages;
	uint64_t base; /* link-time address of the first page, a multiple of its size */
};

struct mp_row {
	uint16_t low;	 /* lower 16 bits of the link-time address */
	uint16_t number; /* of its rule */
};

/* How the CFA, the caller's stack pointer, is computed. Registers have x86's numbers. */
enum mp_row_cfa {
	MP_ROW_STOP,	 /* cannot be computed; @stop says why */
	MP_ROW_REGISTER, /* cfa_reg + cfa_off */
	MP_ROW_DEREF,	 /* the word at cfa_reg + cfa_off, + cfa_add */
	/* cfa_reg + cfa_off, and 8 more if the lower four bits of the address are >= cfa_add */
	MP_ROW_PLT,
	MP_NR_ROW_CFA,
};

/* Ways to find a saved word: the caller's rbp, or the return address. */
enum mp_row_saved {
	MP_ROW_SAME,	/* still in its register; not for the return address */
	MP_ROW_AT_CFA,	/* at CFA + offset */
	MP_ROW_AT_RSP,	/* at this frame's rsp + offset */
	MP_ROW_AT_RBP,	/* at this frame's rbp + offset */
	MP_ROW_UNKNOWN, /* not to be found; not for the return address */
	MP_NR_ROW_SAVED,
};

#define MP_ROW_SIGNAL 1U /* frame of a signal handler's return: the caller was interrupted */
#define MP_ROW_BOTTOM 2U /* there is no caller */
/*
 * The row begins an FDE: a function, or a part of one. The second flag is for a row that would have the rule
 * of the row before it, and be merged with it.
 */
#define MP_ROW_ENTRY	 4U
#define MP_ROW_ENTRY_ODD 8U
#define MP_ROW_ENTRIES	 (MP_ROW_ENTRY | MP_ROW_ENTRY_ODD)

/* Why a row gives no caller. The values are in files and records. */
enum mp_row_stop {
	MP_ROW_STOP_NONE,
	MP_ROW_STOP_NO_ROW,	/* no FDE covers the address */
	MP_ROW_STOP_EXPRESSION, /* an expression of unknown form gives the CFA */
	MP_ROW_STOP_RETURN,	/* a rule of unknown kind gives the return address */
	MP_ROW_STOP_PROGRAM, /* the FDE's program has operations that unwinders read differently */
	MP_ROW_STOP_OVERLAP, /* two FDEs start at one address */
	MP_ROW_STOP_RANGE,   /* an offset or a number is too large */
	MP_ROW_STOP_STACK,   /* the code has changed to another stack, the FDE does not say so */
	MP_NR_ROW_STOP,
};

struct mp_row_rule {
	uint8_t cfa;	 /* enum mp_row_cfa */
	uint8_t cfa_reg; /* below 16 */
	uint8_t rbp, ra; /* enum mp_row_saved */
	int32_t cfa_off;
	int32_t cfa_add;
	int32_t rbp_off;
	int32_t ra_off;
	uint16_t flags; /* MP_ROW_* */
	uint16_t stop;	/* enum mp_row_stop */
};

_Static_assert(sizeof(struct mp_rows_head) == 24, "size of the head");
_Static_assert(sizeof(struct mp_row) == 4, "size of a row");
_Static_assert(sizeof(struct mp_row_rule) == 24, "size of a rule");

#endif
