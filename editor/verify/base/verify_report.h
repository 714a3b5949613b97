// SPDX-License-Identifier: Apache-2.0
/* verify_report - what verify says of an output: its kind, what was compared, who checked which bytes, who was refused. */
#ifndef ME_VERIFY_REPORT_H
#define ME_VERIFY_REPORT_H

#include <stdint.h>

struct mp_elf;

#define ME_MAX_UNPROVED 256
#define ME_MAX_REFUSED	32

/* A function of the original, and the registers that stubs of its copy set and that may be
 * live. */
struct me_unproved {
	uint64_t start;
	uint16_t registers;
};

/*
 * Who checked bytes of an output. verify ends with: each byte of the file has one owner.
 */
enum me_owner {
	ME_OWNER_EHDR,
	ME_OWNER_PHDRS,
	ME_OWNER_OLD,
	ME_OWNER_BUILD_ID,
	ME_OWNER_MOVED,
	ME_OWNER_GAP,
	ME_OWNER_COPY,
	ME_OWNER_STUB,
	ME_OWNER_PADDING,
	ME_OWNER_RUNTIME,
	ME_OWNER_ANSWERS,
	ME_OWNER_COUNTS_PATH,
	ME_OWNER_VERSION_TABLES,
	ME_OWNER_LSDA,
	ME_OWNER_EH_FRAME,
	ME_OWNER_EH_FRAME_HDR,
	ME_OWNER_MAP,
	ME_OWNER_KEPT,
	ME_OWNER_SYMBOLS,
	ME_OWNER_STRINGS,
	ME_OWNER_SECTION_NAMES,
	ME_OWNER_SHDRS,
	ME_OWNER_DEBUG_INFO,
	ME_OWNER_DEBUG_ADDED,
	ME_OWNER_LINK,
	ME_OWNER_TABLE,
	ME_NR_OWNERS,
};

/* File offsets [start, end). */
struct me_owned {
	uint32_t start, end, owner;
};

/* Return: what the bytes are, in words; why some may have other values, or NULL: none may. */
const char *me_owner_name(enum me_owner owner);
const char *me_owner_freedom(enum me_owner owner);

/* The purposes of outputs. Only a layout may stay in the place of its original. */
enum me_kind {
	ME_KIND_LAYOUT,
	ME_KIND_COUNTS,	 /* counts edges */
	ME_KIND_THREADS, /* the same, in counters for each thread */
	ME_KIND_NUMBERS, /* keeps path numbers in registers */
	ME_KIND_POLLS,	 /* the same, and can be polled for them */
	ME_KIND_AUDIT,	 /* has two versions of some functions, and times them */
	ME_KIND_CALLS,	 /* samples calls */
	ME_KIND_METER,	 /* counts at a few places */
	/* The same as layout, edges and meter, for processes that run already. */
	ME_KIND_LIVE,
	ME_KIND_LIVE_COUNTS,
	ME_KIND_LIVE_METER,
	ME_NR_KINDS,
};

/* A function of the original that was refused, and why. */
struct me_refused {
	uint64_t vaddr; /* in the function */
	char why[240];
};

struct me_verify_report {
	uint64_t nr_pieces, nr_insns; /* copied code compared */
	uint64_t nr_patches;	      /* jumps written over old block starts */
	uint64_t nr_retargeted;	      /* calls and jumps in old code led to copies */
	uint64_t nr_table_entries;    /* table words led to copies */
	uint64_t nr_pointers;	      /* function addresses replaced by the copy's */
	uint64_t nr_unwind_rows;      /* rows compared */
	uint64_t nr_landing_pads;
	uint64_t nr_via_slot; /* calls and jumps of copies that go through a PLT stub's slot */
	uint64_t nr_inlined;  /* calls of copies that were replaced by the called function's code */
	uint64_t nr_left_out; /* runs of instructions for code markers that a copy lacks */
	/* Functions that were refused for such registers: the first ME_MAX_UNPROVED of them. */
	struct me_unproved unproved[ME_MAX_UNPROVED];
	uint32_t nr_unproved;
	/* Instructions that copies lack and that may be needed: the first ME_MAX_UNPROVED. */
	uint64_t needed[ME_MAX_UNPROVED];
	uint32_t nr_needed;
	enum me_kind kind;	      /* true if the output is proved */
	uint64_t owned[ME_NR_OWNERS]; /* bytes of each owner; of a proved output only */
	/*
	 * If each difference that was found belongs to a function: the first of these functions, at
	 * most ME_MAX_REFUSED. An output without their copies may be accepted.
	 */
	struct me_refused refused[ME_MAX_REFUSED];
	uint32_t nr_refused;
};

/* Separate debug files, both opened with MP_ELF_DEBUG and MP_ELF_SYMBOLS. */
struct me_verify_debug {
	const struct mp_elf *original, *output;
	const char *name; /* the name by which the program's output finds @output */
};

#endif
