// SPDX-License-Identifier: Apache-2.0
/*
 * inlined_output - outputs in which functions stand in place of calls of them, and changes of such outputs: of single
 * bytes, instructions, branches, the map of pieces, the note of replaced calls, and the ranges of unwind rows.
 *
 * For tests of verify: a changed output that passes must still be the same program, which is asked by running it.
 */
#ifndef MORPH_TESTS_INLINED_OUTPUT_H
#define MORPH_TESTS_INLINED_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"
#include "tests/support/rewrite.h"

/* A range of the output's file that says something about code in place of calls. */
struct inlined_range {
	uint64_t off, size;
};

struct inlined_output {
	struct rewrite_bytes program, output;
	struct mp_elf *original, *good;
	struct mp_map *map;
	/* Instructions in place of calls, with the branches behind them, and those that lower the stack pointer. */
	struct mp_insn *insns;
	uint32_t nr_insns;
	/* Such code, and the rows and exception tables of the copies that it belongs to. */
	struct inlined_range *ranges;
	uint32_t nr_ranges;
	uint64_t nr_bytes; /* of all ranges */
	/* How the original ends with this argument (NULL: none), and its output. */
	const char *argument;
	char *want;
	size_t nr_want; /* bytes */
	int status;
};

/*
 * inlined_output_make - builds a program with @command (see rewrite_compile()), runs it, and replaces calls at random
 * by @seed as --all --lab=stress-inline does. Return: false: something failed. Ownership: inlined_output_fini(), always.
 */
bool inlined_output_make(struct inlined_output *x, const char *command, const char *argument,
			 uint64_t seed);
void inlined_output_fini(struct inlined_output *x);

enum inlined_change {
	INLINED_BYTE, /* byte @a of all ranges becomes @b */
	INLINED_NOPS, /* instruction @a becomes no-ops */
	INLINED_SWAP, /* instruction @a changes places with the next one of its piece */
	INLINED_COPY, /* instruction @a becomes another one of the same length, which @b chooses */
	INLINED_AIM,  /* branch @a leads to instruction @b, or to piece @b */
	INLINED_CONDITION, /* branch @a has the condition @b */
	INLINED_PIECE,	   /* piece @a stands for the code of piece @b */
	INLINED_EDGE,	   /* piece @a ends, and the next one begins, @b bytes later or earlier */
	INLINED_CALL,	   /* the note of replaced call @a changes as @b says */
	INLINED_ROWS, /* the FDE of piece @a ends @b bytes later or earlier, as the next one begins */
	NR_INLINED_CHANGES
};

/* An output that is changed. */
struct inlined_mutant {
	const struct inlined_output *of;
	uint8_t *bytes; /* as many as the good output has */
	struct mp_map map;
	bool map_changed;
};

bool inlined_mutant_init(struct inlined_mutant *m, const struct inlined_output *of);
void inlined_mutant_fini(struct inlined_mutant *m);
/* Makes the mutant the good output again. */
void inlined_mutant_reset(struct inlined_mutant *m);
/* Return: false: there is nothing to change in this way. Any numbers are allowed. */
bool inlined_mutate(struct inlined_mutant *m, enum inlined_change how, uint32_t a, uint32_t b);
/* Writes the map, if it changed. Return: false: the map does not fit. */
bool inlined_mutant_finish(struct inlined_mutant *m);

/*
 * inlined_runs_alike - do the changed bytes, as a program, end like the original, with the same output? Programs that
 * cannot be started, or run for more than ten seconds of CPU, do not.
 */
bool inlined_runs_alike(const struct inlined_output *x, const uint8_t *bytes, size_t size);

#endif
