// SPDX-License-Identifier: Apache-2.0
/*
 * unwind_mutant - an output whose unwind sections are taken apart, so that a test may change CIEs, FDEs, their order,
 * the search table and the exception tables, and put together again. What follows the sections moves along.
 *
 * Without a change, the result is the output itself.
 */
#ifndef MORPH_TESTS_UNWIND_MUTANT_H
#define MORPH_TESTS_UNWIND_MUTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct mutant_entry {
	bool is_cie;
	uint32_t cie; /* of an FDE: index of its CIE */
	/* A CIE */
	uint8_t version, fde_enc, lsda_enc, personality_enc;
	char letters[12];
	uint64_t code_align, ra, personality;
	int64_t data_align;
	/* An FDE */
	uint64_t start, size, lsda;
	uint8_t *program;      /* without the no-ops at its end */
	uint32_t len, padding; /* bytes of no-ops; UINT32_MAX: as many as needed */
	uint64_t put_at;       /* offset in the new section */
};

struct unwind_mutant {
	const struct mp_elf *good;
	uint64_t copies; /* where copies begin */
	struct mutant_entry *entries, *pristine;
	uint32_t nr, nr_pristine, cap;
	uint8_t hdr[4]; /* version and encodings */
	uint8_t *arena; /* of programs that were changed */
	size_t arena_used;
	uint8_t *bytes;
	size_t size, room;
	/* After the search table was made, and before it is written */
	void (*change_table)(uint8_t *table, uint32_t nr, uint64_t how);
	uint64_t table_how;
};

#define MUTANT_ARENA (1u << 20)

/* Return: false: the output has another form, or no memory. */
bool unwind_mutant_init(struct unwind_mutant *m, const struct mp_elf *good);
void unwind_mutant_fini(struct unwind_mutant *m);
/* Takes back all changes. */
void unwind_mutant_reset(struct unwind_mutant *m);
/* Makes @m->bytes. Return: false: the sections do not fit in this file. */
bool unwind_mutant_finish(struct unwind_mutant *m);
/* Room for a changed program */
uint8_t *unwind_mutant_alloc(struct unwind_mutant *m, size_t size);
/* Inserts @entry in front of index @at. FDEs keep their CIEs. */
void unwind_mutant_insert(struct unwind_mutant *m, uint32_t at, struct mutant_entry entry);
/* Bytes of the step at the start of [@p, @p + @len) of a program; 0: not known. */
uint32_t unwind_step_size(const uint8_t *p, uint32_t len);

#endif
