// SPDX-License-Identifier: Apache-2.0
/*
 * unwinders - what four unwinders find for an instruction: libgcc, LLVM's libunwind, the older libunwind
 * (nongnu.org) and gdb. Each reads the sections by itself, with the rules that it is known to have.
 *
 * Shares no code with the editor and verify. test_unwinders compares the first of them with the real libgcc.
 */
#ifndef MORPH_TESTS_UNWINDERS_H
#define MORPH_TESTS_UNWINDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/note/map.h"

enum unwinder {
	UNWINDER_LIBGCC,
	UNWINDER_LLVM,
	UNWINDER_NONGNU,
	UNWINDER_GDB,
	NR_UNWINDERS
};

extern const char *const unwinder_names[NR_UNWINDERS];

/* General registers, return address, xmm0 to xmm15 */
#define UNWINDER_REGS 33

enum found_how {
	FOUND_DEFAULT, /* no rule, or one that the unwinder treats alike */
	FOUND_SAME,
	FOUND_UNDEFINED,
	FOUND_AT,	/* saved at the CFA plus @off */
	FOUND_IS,	/* the CFA plus @off */
	FOUND_REGISTER, /* register @off; of the CFA: register @reg plus @off */
	FOUND_EXPR_AT,	/* saved at the value of an expression */
	FOUND_EXPR_IS,
};

struct found_rule {
	uint8_t how;
	uint64_t reg;
	int64_t off;
	const uint8_t *expr;
	uint64_t size;
};

struct found_row {
	uint64_t loc;
	struct found_rule cfa, reg[UNWINDER_REGS];
	uint64_t args_size;
};

/* What an unwinder knows of one FDE. Addresses are the file's. */
struct found_frame {
	uint64_t start, size, lsda, personality, ra;
	bool signal, indirect;	/* @indirect: @personality is that of a slot */
	struct found_row *rows; /* ascending @loc */
	uint32_t nr, cap;
	const char *
		dies; /* NULL, or why the unwinder gives up, stops the process or reads elsewhere */
};

/* A program or library as it is loaded. */
struct unwinder_image {
	const struct mp_elf *elf;
	uint64_t base; /* where it is loaded; absolute pointers are not moved by it */
	uint64_t eh_frame, eh_frame_end,
		hdr;		     /* @hdr 0: the program itself registers its .eh_frame */
	struct found_entry *entries; /* of .eh_frame, for unwinders that read it from its start */
	uint32_t nr_entries;
};

/* Return: false: there is no unwind information, or no memory. */
bool unwinder_image_init(struct unwinder_image *image, const struct mp_elf *elf);
void unwinder_image_fini(struct unwinder_image *image);
/* Where the code of FDE @i begins. */
uint64_t image_entry_start(const struct unwinder_image *image, uint32_t i);
/*
 * Finds the FDE for @vaddr and runs its program. @frame: zero, or one that was found before. Return: false: the
 * unwinder finds none.
 */
bool unwinder_find(const struct unwinder_image *image, enum unwinder who, uint64_t vaddr,
		   struct found_frame *frame);
void found_frame_fini(struct found_frame *frame);
/* The row at @vaddr; NULL: none. */
const struct found_row *found_row_at(const struct found_frame *frame, uint64_t vaddr);
bool found_rows_equal(const struct found_row *a, const struct found_row *b);
/* Do rows of two unwinders lead to the same caller? They know different registers. */
bool found_rows_agree(const struct found_row *a, const struct found_row *b);

/* Runs the programs of a CIE and of an FDE that starts at @start. *@frame gets the rows, or @dies. */
void unwinder_run(enum unwinder who, const uint8_t *cie, uint64_t cie_size, const uint8_t *fde,
		  uint64_t fde_size, uint64_t code_align, int64_t data_align,
		  struct found_frame *frame);

/* What a personality routine finds for an instruction. */
struct found_landing {
	bool table, listed;
	uint64_t pad;	  /* 0: none */
	uint64_t catches; /* a digest of filters and types, in their order */
};

/* Return: false: the table cannot be read. */
bool found_landing_read(const struct unwinder_image *image, const struct found_frame *frame,
			uint64_t vaddr, struct found_landing *landing);

/* Prints the first difference, if there is any. Return: whether there is one. */
bool unwinders_differ(const struct unwinder_image *a, const struct unwinder_image *b, bool print);

/* What was compared of an original and its output. */
struct unwinders_report {
	uint64_t nr_insns, nr_rows, nr_inlined, nr_landings;
};

/*
 * At each instruction of each copy, does each unwinder find what it finds at the original's instruction? And do all
 * find the same? Prints the first difference. Return: whether there is none.
 */
bool unwinders_check(const struct unwinder_image *original, const struct unwinder_image *output,
		     const struct mp_map *map, struct unwinders_report *report);

#endif
